// What the simulated driver keeps: memory, streams with their commands, events, modules and graphs.

#pragma once

#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

#include "kernels.h"

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, CAPTURE_UNSUPPORTED = 900 };

namespace {

const uintptr_t CONTEXT = 0xc0de; // of the first device; that of the next is one more
const int DEVICES = 2;
const size_t MEMORY = 1ul << 30; // of each
thread_local uintptr_t entered;
std::mutex one; // kernel at a time: the devices are one core
const char *running = "no kernel";

bool is_inside() { return entered >= CONTEXT && entered < CONTEXT + DEVICES; }

// The device whose context the calling thread is in.
int here() { return int(entered - CONTEXT); }

// Memory of the devices and pinned memory of the host, by address, with how much was asked for on which of them.
struct Blocks {
    struct Block {
        size_t bytes;
        int of;
    };
    std::mutex lock;
    std::map<uintptr_t, Block> blocks;
    size_t used[DEVICES] = {};

    static size_t page() { return size_t(sysconf(_SC_PAGESIZE)); }

    static size_t pages(size_t bytes) { return (bytes + page() - 1) / page() * page(); }

    // The block ends, but for what aligns it to 16 bytes, where a page begins that nobody may touch.
    uintptr_t add(size_t bytes) {
        size_t room = (bytes + 15) / 16 * 16, mapped = pages(room) + 2 * page();
        void *first = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (first == MAP_FAILED) return 0;
        char *inside = static_cast<char *>(first) + page();
        mprotect(inside, pages(room), PROT_READ | PROT_WRITE);
        uintptr_t address = uintptr_t(inside) + pages(room) - room;
        memset(reinterpret_cast<void *>(address), 0xff, room);
        std::lock_guard<std::mutex> guard(lock);
        blocks[address] = {bytes, here()};
        used[here()] += bytes;
        return address;
    }

    bool remove(uintptr_t address) {
        std::lock_guard<std::mutex> guard(lock);
        auto found = blocks.find(address);
        if (found == blocks.end()) return false;
        size_t room = (found->second.bytes + 15) / 16 * 16;
        munmap(reinterpret_cast<void *>(address + room - pages(room) - page()), pages(room) + 2 * page());
        used[found->second.of] -= found->second.bytes;
        blocks.erase(found);
        return true;
    }

    // Whether so many bytes are in one block; `anywhere` or of the device that the calling thread is on.
    bool has(uintptr_t address, size_t bytes, bool anywhere = false) {
        std::lock_guard<std::mutex> guard(lock);
        auto after = blocks.upper_bound(address);
        if (after == blocks.begin()) return false;
        auto block = std::prev(after);
        if (!anywhere && block->second.of != here()) return false;
        return address + bytes <= block->first + block->second.bytes;
    }
};

Blocks device, pinned;

// What CUPTI says of a command beside its time; of no kind where it says nothing.
struct Work {
    unsigned kind, grid[2], threads;
    uint64_t node;
    size_t bytes;
    uint8_t direction, host; // of a copy: 1 to the device, 2 from it; memory of the host, 1 pageable, 2 pinned
};

struct Command {
    std::string name;
    std::function<void()> run;
    Work work = {};
};

// Runs commands in their order, on a thread of its own.
struct Stream {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<Command> waiting;
    bool is_busy = false, is_ended = false, is_capturing = false, is_broken = false;
    int of = here();
    std::vector<Command> captured;
    std::thread worker{[this] { work(); }};

    void work() {
        std::unique_lock<std::mutex> guard(lock);
        for (;;) {
            changed.wait(guard, [this] { return is_ended || !waiting.empty(); });
            if (waiting.empty()) return;
            Command next = std::move(waiting.front());
            waiting.pop_front();
            is_busy = true;
            guard.unlock();
            next.run();
            guard.lock();
            is_busy = false;
            changed.notify_all();
        }
    }

    void add(Command command) {
        std::lock_guard<std::mutex> guard(lock);
        waiting.push_back(std::move(command));
        changed.notify_all();
    }

    void wait() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return waiting.empty() && !is_busy; });
    }

    ~Stream() {
        wait();
        {
            std::lock_guard<std::mutex> guard(lock);
            is_ended = true;
            changed.notify_all();
        }
        worker.join();
    }
};

struct Event {
    std::mutex lock;
    bool is_recorded = false, has_happened = false;
    int64_t at = 0;
};

struct Function {
    std::string name;
    const Bind *bind;
    int of = here();
};

struct Module {
    std::string image;
    std::deque<Function> functions;
};

using Graph = std::vector<Command>;

// Handles that are alive, so that any other is refused.
template <class T> struct Alive {
    std::mutex lock;
    std::set<T *> all;

    T *make() {
        std::lock_guard<std::mutex> guard(lock);
        return *all.insert(new T).first;
    }

    T *find(void *handle) {
        std::lock_guard<std::mutex> guard(lock);
        auto found = all.find(static_cast<T *>(handle));
        return found == all.end() ? nullptr : *found;
    }

    bool destroy(void *handle) {
        T *found = find(handle);
        if (!found) return false;
        {
            std::lock_guard<std::mutex> guard(lock);
            all.erase(found);
        }
        delete found;
        return true;
    }
};

Alive<Stream> streams;
Alive<Event> events;
Alive<Module> modules;
Alive<Function> functions;
Alive<Graph> graphs, executables;
thread_local int capturing;

int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

// A kernel that leaves its memory is named, and the program ends.
void outside(int) {
    const char *parts[] = {"simulated CUDA: ", running, " touches memory that is not its own\n"};
    for (const char *part : parts) (void)!write(2, part, strlen(part));
    _exit(134);
}

// A stream of the device that the calling thread is on.
Stream *own(void *handle) {
    Stream *stream = streams.find(handle);
    return stream && stream->of == here() ? stream : nullptr;
}

// What may be made of a stream while it is not captured.
Stream *open(void *handle) {
    Stream *stream = own(handle);
    if (stream && stream->is_capturing) {
        stream->is_broken = true;
        return nullptr;
    }
    return stream;
}

} // namespace
