"""Imports every file of this folder, and so makes each function under `query_method` a method of Posterior."""

import importlib
import pkgutil

from bayesjpt import queries

for _file in pkgutil.iter_modules(queries.__path__):
    importlib.import_module(f"{queries.__name__}.{_file.name}")
