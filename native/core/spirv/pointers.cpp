#include "spirv/pointers.hpp"

#include "spirv/module.hpp"

namespace kp {
namespace {

using spirv::Instruction;
using spirv::Module;

class Pointers {
public:
    explicit Pointers(const Module& module) : module_(module) {
        for (const uint32_t each : module.capabilities) {
            in_workgroups_ = in_workgroups_ || each == spv::CapabilityVariablePointers;
            in_buffers_ = in_buffers_ || each == spv::CapabilityVariablePointersStorageBuffer;
        }
        in_buffers_ = in_buffers_ || in_workgroups_;
    }

    [[nodiscard]] std::string problem_of_global(Instruction instruction) const {
        if (instruction.op() != spv::OpConstantNull || !is_fixed(instruction[1])) return "";
        return described(instruction[2]) +
               " is a null pointer, and a pointer of its storage class cannot be: only those into "
               "StorageBuffer can with the capability VariablePointersStorageBuffer, and into Workgroup with "
               "VariablePointers";
    }

    [[nodiscard]] std::string problem_of(Instruction instruction) const {
        switch (instruction.op()) {
        case spv::OpBitcast:
            if (is_logical(module_.type_of(instruction[3])))
                return "OpBitcast converts " + described(instruction[3]) +
                       ", a pointer that is no address: only pointers into PhysicalStorageBuffer are";
            if (is_logical(instruction[1]))
                return "OpBitcast makes a pointer, and only pointers into PhysicalStorageBuffer are "
                       "addresses";
            return "";
        case spv::OpCopyObject:
        case spv::OpAccessChain:
        case spv::OpInBoundsAccessChain:
        case spv::OpPtrAccessChain:
        case spv::OpInBoundsPtrAccessChain: return use(instruction[3]);
        case spv::OpFunctionCall:
            for (uint32_t i = 4; i < instruction.size(); ++i)
                if (std::string problem = use(instruction[i]); !problem.empty()) return problem;
            return "";
        default: return "";
        }
    }

private:
    [[nodiscard]] bool is_logical(uint32_t type) const {
        const auto storage = module_.storage_class(type);
        return storage && *storage != spv::StorageClassPhysicalStorageBuffer;
    }

    // True if every pointer of that type stands for one variable. Other pointers can be null until they get a
    // value.
    [[nodiscard]] bool is_fixed(uint32_t type) const {
        if (!is_logical(type)) return false;
        switch (module_.storage_class(type).value_or(0)) {
        case spv::StorageClassStorageBuffer: return !in_buffers_;
        case spv::StorageClassWorkgroup: return !in_workgroups_;
        default: return true;
        }
    }

    // Unused undefined pointers are harmless, and optimizers leave them behind.
    [[nodiscard]] std::string use(uint32_t id) const {
        const Instruction pointer = module_.find(id);
        if (pointer.op() != spv::OpUndef || !is_fixed(pointer[1])) return "";
        return described(id) + " is an undefined pointer, and something uses it";
    }

    [[nodiscard]] std::string described(uint32_t id) const {
        const std::string& name = module_.name(id);
        return name.empty() ? "the id " + std::to_string(id) : "'" + name + "'";
    }

    const Module& module_;
    bool in_buffers_ = false;  // variable pointers, by storage class
    bool in_workgroups_ = false;
};

}  // namespace

std::string pointer_problem(std::span<const uint32_t> words) {
    const Module module(words);
    const Pointers pointers(module);
    for (const Instruction global : module.globals)
        if (std::string problem = pointers.problem_of_global(global); !problem.empty()) return problem;
    for (const auto& function : module.functions())
        for (const Instruction instruction : function.body)
            if (std::string problem = pointers.problem_of(instruction); !problem.empty()) return problem;
    return "";
}

}  // namespace kp
