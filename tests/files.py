"""Saved fits changed as a program would that knows their form: texts with the checksum of what they say now."""

from __future__ import annotations

import h5py

from bayesjpt.posterior.checked_texts import with_checksum


def renew_checksum(file: h5py.File) -> None:
    """Write the checksum of a saved fit's texts anew."""
    attributes = file["bayesjpt"].attrs
    attributes.update(
        with_checksum({name: attributes[name] for name in attributes if isinstance(attributes[name], str)})
    )
