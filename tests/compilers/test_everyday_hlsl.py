"""Sixty compute shaders in HLSL, as people write them for Unity, DirectX and Unreal, run right."""

from __future__ import annotations

import pytest

from tests.support.everyday import Shader, check
from tests.support.languages import needs_dxc, skipping_missing_waves

from .everyday_directx import directx
from .everyday_unity import unity
from .everyday_unreal import unreal

SHADERS = [*unity.shaders, *directx.shaders, *unreal.shaders]


@needs_dxc
@pytest.mark.parametrize("shader", SHADERS, ids=[each.name for each in SHADERS])
def test_everyday_shader(mgr, shader: Shader):
    with skipping_missing_waves():
        check(mgr, shader)
