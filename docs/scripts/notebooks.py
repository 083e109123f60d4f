"""Execute the notebooks of the documentation in place, with their outputs kept in the files (make notebooks).

python docs/scripts/notebooks.py [docs/notebooks/coexistence.ipynb ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def main() -> None:
    for path in [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=1800).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # times of day, which differ in every execution
        nbformat.write(notebook, path)
        print(f"{path.name} was executed.", flush=True)


if __name__ == "__main__":
    main()
