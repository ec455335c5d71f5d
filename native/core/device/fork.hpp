// What becomes of devices in a child process after fork().
//
// The child has the parent's handles and none of the driver's threads: any Vulkan call with them may hang,
// and freeing them would free what is the parent's. So in the child every device counts as closed and every
// object as destroyed, nothing of them is ever freed there, and whoever uses one is told to make a new
// Manager. A new one works: it gets an instance of its own.
//
// Costs nothing otherwise: the objects are marked once, in the child.
#pragma once

#include <memory>
#include <vector>

namespace kp {

// Whoever has something to do around fork(). Devices have.
class ForkAware {
public:
    // In the parent, before: takes the locks of the lists that must be whole in the child, whatever other
    // threads are doing.
    virtual void before_fork() noexcept = 0;
    // In the parent, after: gives them back.
    virtual void after_fork() noexcept = 0;
    // In the child: gives them back as well, and marks what is the parent's. What is put in `kept` is never
    // destroyed.
    virtual void become_foreign(std::vector<std::shared_ptr<void>>& kept) = 0;

protected:
    ForkAware() = default;
    ~ForkAware() = default;
};

// Called with each one that is made, and before it goes.
void enlist_for_fork(ForkAware& one);
void delist_for_fork(ForkAware& one) noexcept;
// Whether this process is a child of one that had drivers loaded: their threads are missing here, and what
// they do when the process ends may wait for them.
[[nodiscard]] bool forked_with_drivers() noexcept;

}  // namespace kp
