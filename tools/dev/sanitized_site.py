"""`./dev asan` has this as its sitecustomize: kompute_py is the package beside it, whatever is installed and
wherever Python starts.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

_SITE = os.path.dirname(os.path.abspath(__file__))


class _Beside:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        return PathFinder.find_spec(name, [_SITE]) if name == "kompute_py" else None


sys.meta_path[:] = [each for each in sys.meta_path if "ScikitBuild" not in type(each).__name__]
sys.meta_path.insert(0, _Beside)  # type: ignore[arg-type]
