// The treatment of devices in a child process after fork().
//
// The child has the parent's handles and none of the driver's threads: any Vulkan call with them may hang,
// and freeing them would free the parent's objects. So in the child, every device counts as closed and
// every object as destroyed, none of them is ever freed there, and using one raises an error that says to
// make a new Manager. A new Manager works, because it gets an instance of its own.
//
// Costs nothing otherwise: the objects are marked once, in the child.
#pragma once

#include <memory>
#include <vector>

namespace kp {

// Base of objects that must act around fork(), such as devices.
class ForkAware {
public:
    // In the parent, before fork(): takes the locks of the lists that must be consistent in the child,
    // whatever other threads are doing.
    virtual void before_fork() noexcept = 0;
    // In the parent, after fork(): releases the locks.
    virtual void after_fork() noexcept = 0;
    // In the child: releases the locks too, and marks the parent's objects. Objects put in `kept` are never
    // destroyed.
    virtual void become_foreign(std::vector<std::shared_ptr<void>>& kept) = 0;

protected:
    ForkAware() = default;
    ~ForkAware() = default;
};

// Call the first for each new object, and the second before its destruction.
void enlist_for_fork(ForkAware& one);
void delist_for_fork(ForkAware& one) noexcept;
// True if this process is a child of one that had drivers loaded. The drivers' threads are missing here,
// and the drivers' exit handlers may wait for them.
[[nodiscard]] bool forked_with_drivers() noexcept;

}  // namespace kp
