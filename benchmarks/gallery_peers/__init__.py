"""Programs of the gallery as users of Taichi and wgpu-py would write them."""
