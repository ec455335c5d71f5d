// What becomes of devices in a child process after fork().
//
// The child has the parent's handles and none of the driver's threads: any Vulkan call with them may hang, and freeing them
// would free what is the parent's. So in the child every device counts as closed and every object as destroyed, nothing of them
// is ever freed there, and whoever uses one is told to make a new Manager. A new one works: it gets an instance of its own.
//
// Costs nothing otherwise: the objects are marked once, in the child.
#pragma once

namespace kp {

class Device;

// Called with each device that is made, and before it goes.
void enlist_for_fork(Device& device);
void delist_for_fork(Device& device) noexcept;
// Whether this process is a child of one that had drivers loaded: their threads are missing here, and what they do when the
// process ends may wait for them.
[[nodiscard]] bool forked_with_drivers() noexcept;

}  // namespace kp
