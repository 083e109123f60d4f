"""What a user sees while a run is on its way: progress, reports, refusals and interruptions."""
