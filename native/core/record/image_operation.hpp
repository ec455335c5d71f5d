// Copies of regions between images, and between images and buffers.
#pragma once

#include "record/operation.hpp"
#include "resource/image.hpp"

#include <optional>

namespace kp {

// A region belongs to an image; without one, it is the whole image. For a buffer, the range holds the
// texels in dense rows.
[[nodiscard]] OperationPtr make_copy_region(const ResourceRange& source,
                                            const std::optional<ImageRegion>& source_region,
                                            const ResourceRange& target,
                                            const std::optional<ImageRegion>& target_region);

}  // namespace kp
