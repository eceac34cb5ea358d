// CUPTI over the simulated driver, for tests: the calls that a collector makes, and records of what the driver's calls do, in the
// form of CUDA 13 (`CUpti_Activity…` of its reference). As strict as the real one: one subscriber, a clock only before the first
// kind, no record of a kind that is off, of a replay one record or one of each node. STRATO_SIMULATED_CUPTI makes it refuse
// ("taken") or lose every so many kernels ("drop:3").

#pragma once

#include <atomic>

#include <sys/syscall.h>

#include "state.h"

namespace cupti {

enum { SUCCESS = 0, INVALID_PARAMETER = 1, NO_MORE = 12, QUEUE_EMPTY = 24, INVALID_KIND = 21, TAKEN = 39 };
enum { MEMCPY = 1, MEMSET = 2, DRIVER = 4, RUNTIME = 5, KIND_KERNEL = 10, OVERHEAD = 17, PEER = 22, WAIT = 38, EXTERNAL = 39,
       REPLAY = 51 };
enum { CREATED = 13, CLONED = 20, RESOURCE = 3 };

static const std::map<unsigned, const char *> CALLS = {
    {20, "cuModuleLoadDataEx"}, {119, "cuEventRecord"}, {126, "cuStreamSynchronize"}, {216, "cuMemsetD8Async"},
    {277, "cuMemcpyHtoDAsync_v2"}, {279, "cuMemcpyDtoHAsync_v2"}, {307, "cuLaunchKernel"}, {497, "cuStreamEndCapture"},
    {514, "cuGraphLaunch"}, {643, "cuGraphInstantiateWithFlags"}};

// Bytes of a record of each kind.
static const std::map<unsigned, size_t> SIZES = {{MEMCPY, 88}, {MEMSET, 88}, {DRIVER, 40}, {RUNTIME, 40}, {KIND_KERNEL, 224},
                                                 {OVERHEAD, 48}, {PEER, 96}, {WAIT, 56}, {EXTERNAL, 24}, {REPLAY, 56}};
// Of a buffer no more is used, so that a run fills several.
static const size_t ROOM = 1 << 15;

using Request = void (*)(uint8_t **, size_t *, size_t *);
using Complete = void (*)(void *, uint32_t, uint8_t *, size_t, size_t);
using Callback = void (*)(void *, uint32_t, uint32_t, const void *);

struct Buffer {
    uint8_t *begin;
    size_t size, used;
};

static std::mutex guarded; // all that follows
static std::set<unsigned> enabled, callbacks;
static std::vector<Buffer> full;
static Buffer current;
static Request request;
static Complete complete;
static Callback callback;
static size_t dropped, kernels;
static bool is_subscribed;
static std::set<std::string> names;

static std::atomic<uint64_t (*)()> stamps{nullptr};
static std::atomic<uint32_t> correlations{0};
static std::atomic<uint64_t> nodes{1ull << 40};
static thread_local std::vector<uint64_t> pushed;

// Of the two clocks its own is a day ahead.
static uint64_t stamp() {
    auto given = stamps.load();
    return given ? given() : uint64_t(now()) + 86400000000000ull;
}

static bool is_on(unsigned kind) {
    std::lock_guard<std::mutex> guard(guarded);
    return enabled.count(kind) > 0;
}

static const char *asked() {
    const char *asked = getenv("STRATO_SIMULATED_CUPTI");
    return asked ? asked : "";
}

// Bytes of a record, written field by field.
struct Record {
    unsigned kind;
    std::vector<uint8_t> bytes;

    explicit Record(unsigned kind) : kind(kind), bytes(SIZES.at(kind)) { set<uint32_t>(0, kind); }

    template <class T> Record &set(size_t at, T value) {
        memcpy(&bytes.at(at + sizeof(T) - 1) + 1 - sizeof(T), &value, sizeof(T));
        return *this;
    }

    void add() const {
        std::lock_guard<std::mutex> guard(guarded);
        if (!enabled.count(kind)) return;
        unsigned every = 0;
        if (kind == KIND_KERNEL && sscanf(asked(), "drop:%u", &every) == 1 && every && ++kernels % every == 0) {
            dropped++;
            return;
        }
        if (!current.begin || current.used + bytes.size() > std::min(current.size, ROOM)) {
            if (current.begin) full.push_back(current);
            current = {};
            size_t most = 1;
            request(&current.begin, &current.size, &most);
            if (!current.begin) {
                dropped++;
                return;
            }
        }
        memcpy(current.begin + current.used, bytes.data(), bytes.size());
        current.used += bytes.size();
    }
};

static uint32_t thread_id() { return uint32_t(syscall(SYS_gettid)); }

// A call of the driver, while it lasts.
struct Call {
    unsigned number;
    uint32_t correlation = ++correlations;
    uint64_t start = stamp();

    explicit Call(unsigned number) : number(number) {
        if (!pushed.empty()) Record(EXTERNAL).set(4, 3u).set(8, pushed.back()).set(16, correlation).add();
    }

    ~Call() {
        uint64_t end = stamp();
        Record(DRIVER)
            .set(4, number).set(8, start).set(16, end).set(24, uint32_t(getpid())).set(28, thread_id())
            .set(32, correlation).add();
        if (number == 126) {
            Record(WAIT).set(4, 3u).set(8, start).set(16, end).set(24, correlation).set(28, 1u).set(32, 13u).add();
        }
    }
};

static void record(const Command &command, uint32_t correlation, uint64_t queued, uint64_t start, uint64_t end) {
    const Work &work = command.work;
    if (work.kind == KIND_KERNEL) {
        const char *name;
        {
            std::lock_guard<std::mutex> guard(guarded);
            name = names.insert(command.name).first->c_str();
        }
        Record(KIND_KERNEL)
            .set(16, start).set(24, end).set(32, end).set(40, 0u).set(44, 1u).set(48, 13u)
            .set(52, work.grid[0]).set(56, work.grid[1]).set(60, 1u).set(64, work.threads).set(68, 1u).set(72, 1u)
            .set(92, correlation).set(104, uint64_t(uintptr_t(name))).set(120, queued).set(128, queued)
            .set(144, work.node).set(156, work.node ? 5u : 0u).add();
    } else if (work.kind == MEMCPY) {
        bool is_read = work.direction == 2;
        Record(MEMCPY)
            .set(4, work.direction).set(5, uint8_t(is_read ? 3 : work.host)).set(6, uint8_t(is_read ? work.host : 3))
            .set(8, uint64_t(work.bytes)).set(16, start).set(24, end).set(36, 1u).set(40, 13u).set(44, correlation).add();
    } else if (work.kind == MEMSET) {
        Record(MEMSET)
            .set(8, uint64_t(work.bytes)).set(16, start).set(24, end).set(36, 1u).set(40, 13u).set(44, correlation)
            .set(50, uint16_t(3)).add();
    }
}

// A command that a call enqueues, with a record of when it ran.
static void enqueue(Stream *stream, const Call &call, Command command) {
    Command own = command;
    uint32_t correlation = call.correlation;
    uint64_t queued = stamp();
    command.run = [=] {
        uint64_t start = stamp();
        own.run();
        record(own, correlation, queued, start, stamp());
    };
    stream->add(std::move(command));
}

// The commands of a graph: one record of all, or one of each.
static void replay(Stream *stream, const Call &call, const Graph &graph) {
    if (!is_on(REPLAY)) {
        for (const Command &command : graph) enqueue(stream, call, command);
        return;
    }
    auto start = std::make_shared<uint64_t>(0);
    uint32_t correlation = call.correlation;
    stream->add({"replay begins", [=] { *start = stamp(); }});
    for (const Command &command : graph) stream->add(command);
    stream->add({"replay ends", [=] {
                     Record(REPLAY)
                         .set(4, correlation).set(8, *start).set(16, stamp()).set(28, 5u).set(32, 1u).set(36, 13u).add();
                 }});
}

// Tells of a node that a graph got: made by a call, or from another.
static uint64_t node(unsigned what, uint64_t original) {
    uint64_t made = ++nodes, about[7] = {1, 2, made, original}, resource[3] = {0, 0, uint64_t(uintptr_t(about))};
    Callback told = nullptr;
    {
        std::lock_guard<std::mutex> guard(guarded);
        if (callbacks.count(what)) told = callback;
    }
    if (told) told(nullptr, RESOURCE, what, resource);
    return made;
}

// A kernel: on the stream, or into the graph that is captured from it.
static void launch(Stream *stream, const Call &call, Command command, unsigned blocks, unsigned threads, unsigned rows = 1) {
    command.work.kind = KIND_KERNEL;
    command.work.grid[0] = blocks, command.work.grid[1] = rows, command.work.threads = threads;
    if (stream->is_capturing) {
        command.work.node = node(CREATED, 0);
        stream->captured.push_back(std::move(command));
    } else {
        enqueue(stream, call, std::move(command));
    }
}

// Hands buffers back: those that are full, or all. What it takes is overhead of its own.
static void flush(bool all) {
    uint64_t start = stamp();
    std::vector<Buffer> back;
    Complete to;
    {
        std::lock_guard<std::mutex> guard(guarded);
        if (all && current.begin) {
            full.push_back(current);
            current = {};
        }
        back.swap(full);
        to = complete;
    }
    for (const Buffer &buffer : back) to(nullptr, 0, buffer.begin, buffer.size, buffer.used);
    if (back.empty() || all) return;
    Record(OVERHEAD)
        .set(4, 65536u).set(8, 2u).set(12, uint32_t(getpid())).set(16, thread_id()).set(24, start).set(32, stamp()).add();
}

} // namespace cupti

#define CUPTI extern "C" int

CUPTI cuptiGetVersion(uint32_t *version) {
    *version = 26;
    return cupti::SUCCESS;
}

CUPTI cuptiGetResultString(int status, const char **said) {
    *said = status == cupti::TAKEN ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_UNKNOWN";
    return cupti::SUCCESS;
}

CUPTI cuptiSubscribe(void **subscriber, cupti::Callback callback, void *) {
    std::lock_guard<std::mutex> guard(cupti::guarded);
    if (cupti::is_subscribed || !strcmp(cupti::asked(), "taken")) return cupti::TAKEN;
    cupti::is_subscribed = true, cupti::callback = callback, *subscriber = &cupti::callback;
    return cupti::SUCCESS;
}

CUPTI cuptiUnsubscribe(void *subscriber) {
    std::lock_guard<std::mutex> guard(cupti::guarded);
    if (!cupti::is_subscribed || subscriber != &cupti::callback) return cupti::INVALID_PARAMETER;
    cupti::is_subscribed = false, cupti::callback = nullptr;
    cupti::callbacks.clear();
    return cupti::SUCCESS;
}

CUPTI cuptiEnableCallback(uint32_t on, void *subscriber, uint32_t domain, uint32_t number) {
    std::lock_guard<std::mutex> guard(cupti::guarded);
    if (subscriber != &cupti::callback || domain != cupti::RESOURCE) return cupti::INVALID_PARAMETER;
    if (on) cupti::callbacks.insert(number);
    else cupti::callbacks.erase(number);
    return cupti::SUCCESS;
}

CUPTI cuptiGetCallbackName(uint32_t domain, uint32_t number, const char **name) {
    auto found = cupti::CALLS.find(number);
    if (domain != 1 || found == cupti::CALLS.end()) return cupti::INVALID_PARAMETER;
    *name = found->second;
    return cupti::SUCCESS;
}

CUPTI cuptiGetGraphNodeId(void *node, uint64_t *number) {
    *number = uintptr_t(node);
    return cupti::SUCCESS;
}

CUPTI cuptiGetTimestamp(uint64_t *time) {
    *time = cupti::stamp();
    return cupti::SUCCESS;
}

CUPTI cuptiActivityRegisterTimestampCallback(uint64_t (*clock)()) {
    std::lock_guard<std::mutex> guard(cupti::guarded);
    if (!cupti::enabled.empty()) return cupti::INVALID_PARAMETER;
    cupti::stamps = clock;
    return cupti::SUCCESS;
}

CUPTI cuptiSetThreadIdType(uint32_t) { return cupti::SUCCESS; }

CUPTI cuptiActivityEnableLatencyTimestamps(uint8_t) { return cupti::SUCCESS; }

CUPTI cuptiActivityRegisterCallbacks(cupti::Request request, cupti::Complete complete) {
    std::lock_guard<std::mutex> guard(cupti::guarded);
    cupti::request = request, cupti::complete = complete;
    return cupti::SUCCESS;
}

CUPTI cuptiActivityEnable(uint32_t kind) {
    std::lock_guard<std::mutex> guard(cupti::guarded);
    if (!cupti::request) return cupti::INVALID_PARAMETER;
    if (!cupti::SIZES.count(kind)) return cupti::INVALID_KIND;
    cupti::enabled.insert(kind);
    return cupti::SUCCESS;
}

CUPTI cuptiActivityDisable(uint32_t kind) {
    std::lock_guard<std::mutex> guard(cupti::guarded);
    cupti::enabled.erase(kind);
    return cupti::SUCCESS;
}

CUPTI cuptiActivityFlushAll(uint32_t flag) {
    cupti::flush(flag & 1);
    return cupti::SUCCESS;
}

CUPTI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
    uint32_t kind = 0;
    if (*record) memcpy(&kind, *record, 4);
    uint8_t *next = *record ? *record + cupti::SIZES.at(kind) : buffer;
    if (next >= buffer + valid) return cupti::NO_MORE;
    *record = next;
    return cupti::SUCCESS;
}

CUPTI cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *count) {
    std::lock_guard<std::mutex> guard(cupti::guarded);
    *count = cupti::dropped;
    cupti::dropped = 0;
    return cupti::SUCCESS;
}

CUPTI cuptiActivityPushExternalCorrelationId(uint32_t, uint64_t id) {
    cupti::pushed.push_back(id);
    return cupti::SUCCESS;
}

CUPTI cuptiActivityPopExternalCorrelationId(uint32_t, uint64_t *last) {
    if (cupti::pushed.empty()) return cupti::QUEUE_EMPTY;
    *last = cupti::pushed.back();
    cupti::pushed.pop_back();
    return cupti::SUCCESS;
}
