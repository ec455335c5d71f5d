#include "bindings.hpp"
#include "run/frame_uses.hpp"

namespace kp {
namespace {

Substitution unsynced(const std::vector<std::shared_ptr<Resource>>& memories) {
    Substitution substitution;
    for (const auto& memory : memories) substitution.unsynced.insert(memory.get());
    return substitution;
}

py::list uses(Stream& stream, const std::vector<ResourceRange>& inputs,
              const std::vector<std::shared_ptr<Resource>>& streamed) {
    py::list result;
    for (const auto& use : frame_uses(stream, inputs, unsynced(streamed))) {
        py::dict each;
        each["memory"] = use.resource;
        each["read"] = use.read;
        each["written"] = use.written;
        each["carried"] = use.carried;
        each["fixed"] = use.fixed;
        each["uploaded"] = use.uploaded;
        each["downloaded"] = use.downloaded;
        result.append(std::move(each));
    }
    return result;
}

}  // namespace

void bind_substitution(py::module_& m) {
    m.def("frame_uses", &uses);
    m.def("substituted",
          [](Stream& stream,
             const std::vector<std::pair<std::shared_ptr<Resource>, std::shared_ptr<Resource>>>& pairs,
             const std::vector<std::shared_ptr<Resource>>& streamed) {
              Substitution substitution = unsynced(streamed);
              for (const auto& [old, by] : pairs) {
                  if (old->nbytes() != by->nbytes())
                      throw Error(ErrorKind::internal, "substituted() needs memory of equal sizes");
                  substitution.replaced.emplace(old.get(), by);
              }
              std::vector<std::shared_ptr<Operation>> result;
              for (const auto& operation : substituted(stream, substitution))
                  result.push_back(std::const_pointer_cast<Operation>(operation));
              return result;
          });
}

}  // namespace kp
