#include "base/messages.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

namespace {

using kp::Mailbox;
using kp::Message;
using kp::MessageRouter;

Message message(const char* text) { return {"error", "VUID", text}; }

std::vector<std::string> texts(const std::vector<Message>& messages, bool own) {
    std::vector<std::string> found;
    for (const Message& each : messages)
        if (each.own == own) found.push_back(each.text);
    return found;
}

using Texts = std::vector<std::string>;

struct Acting {  // what Device::vk() notes
    explicit Acting(uint64_t number) { kp::acting_device = number; }
    ~Acting() { kp::acting_device = 0; }
};

}  // namespace

TEST_CASE("messages: a handle says whose a message is, before the thread does") {
    MessageRouter router;
    Mailbox a(router);
    Mailbox b(router);
    a.claim(11);
    b.claim(22);
    const Acting acting(a.number());
    router.route(message("b's"), {5, 22});
    router.route(message("a's by thread"), {5});
    router.route(message("a's"), {11});
    CHECK(texts(a.drain(), true) == Texts{"a's by thread", "a's"});
    CHECK(texts(b.drain(), true) == Texts{"b's"});
    CHECK(a.drain().empty());
}

TEST_CASE("messages: of a thread that called no device they are the only device's, else nobody's") {
    MessageRouter router;
    Mailbox a(router);
    router.route(message("only"), {});
    CHECK(texts(a.drain(), true) == Texts{"only"});
    Mailbox b(router);
    router.route(message("whose"), {});
    CHECK(texts(b.drain(), false) == Texts{"whose"});
    CHECK(a.drain().empty());
}

TEST_CASE("messages: what a device that goes has not read is logged by another, as nobody's") {
    MessageRouter router;
    Mailbox a(router);
    {
        Mailbox b(router);
        b.claim(7);
        router.route(message("last words"), {7});
    }
    const std::vector<Message> found = a.drain();
    CHECK(texts(found, false) == Texts{"last words"});
    router.route(message("handle of one that is gone"), {7});
    CHECK(texts(a.drain(), true) == Texts{"handle of one that is gone"});  // a is alone now
}

TEST_CASE("messages: threads on different devices at once") {
    MessageRouter router;
    Mailbox a(router);
    Mailbox b(router);
    const auto work = [&](Mailbox& box, const char* text) {
        for (int i = 0; i < 1000; ++i) {
            kp::acting_device = box.number();
            router.route(message(text), {});
        }
    };
    std::thread other([&] { work(b, "b"); });
    work(a, "a");
    other.join();
    kp::acting_device = 0;
    CHECK(texts(a.drain(), true) == Texts(1000, "a"));
    CHECK(texts(b.drain(), true) == Texts(1000, "b"));
}
