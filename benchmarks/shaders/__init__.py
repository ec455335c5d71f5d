"""Seven shaders, the same SPIR-V through kompute_py, compushady and wgpu, in turns: `./dev bench shaders`.

What a shader's run takes is the driver's business, unless the library in between changes the shader, adds
barriers or submits in pieces. So all should be level.
"""
