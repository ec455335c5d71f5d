#include "user_line.hpp"

#include "interpreter.hpp"

#include <string_view>
#include <utility>

namespace kp {
namespace {

std::string& package() {
    static auto* const folder = new std::string;
    return *folder;
}

std::string find_line() {
    PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
    std::string line;
    while (frame) {
        PyCodeObject* code = PyFrame_GetCode(frame);
        const char* file = PyUnicode_AsUTF8(code->co_filename);
        if (!file) PyErr_Clear();
        if (file && std::string_view(file).substr(0, package().size()) != package())
            line = std::string(file) + ':' + std::to_string(PyFrame_GetLineNumber(frame));
        Py_DECREF(code);
        PyFrameObject* const caller = line.empty() ? PyFrame_GetBack(frame) : nullptr;
        Py_DECREF(frame);
        frame = caller;
    }
    return line;
}

}  // namespace

void set_package(std::string folder) { package() = std::move(folder); }

std::string user_line() {
    if (!has_interpreter_lock()) return {};
    const int collected = PyGC_Disable();
    std::string line = find_line();
    if (collected) PyGC_Enable();
    return line;
}

}  // namespace kp
