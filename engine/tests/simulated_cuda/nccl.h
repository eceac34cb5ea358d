// NCCL without devices, for tests: ranks of one process, each on a device of its own. A collective is a command of the stream
// that waits for the same one of all other ranks, as a real one does; ranks that call different ones end the program.

#pragma once

#include "cupti.h"

namespace nccl {

enum { SUCCESS = 0, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

struct Id {
    char bytes[128];
};

// Ranks that were given the same id.
struct Group {
    std::mutex lock;
    std::condition_variable changed;
    int ranks = 0, here = 0;
    unsigned long round = 0;
    std::set<int> joined;
    std::map<int, std::pair<std::string, const float *>> shown;

    // Waits until all ranks have come here.
    void meet() {
        std::unique_lock<std::mutex> guard(lock);
        unsigned long own = round;
        if (++here == ranks) {
            here = 0, round++;
            changed.notify_all();
        } else {
            changed.wait(guard, [&] { return round != own; });
        }
    }
};

struct Rank {
    std::shared_ptr<Group> group;
    int number, of;

    // Every rank's part, once all ranks brought one to the same collective; `then` gets them before any rank goes on.
    void exchange(const std::string &what, const float *part, const std::function<void(std::vector<const float *>)> &read,
                  const std::function<void()> &write) {
        {
            std::lock_guard<std::mutex> guard(group->lock);
            group->shown[number] = {what, part};
        }
        group->meet();
        std::vector<const float *> parts;
        for (auto &[rank, shown] : group->shown) {
            if (shown.first != what) {
                fprintf(stderr, "simulated NCCL: rank %d is at %s, another at %s\n", number, what.c_str(), shown.first.c_str());
                abort();
            }
            parts.push_back(shown.second);
        }
        read(parts);
        // Nobody's part is overwritten before all have read it.
        group->meet();
        write();
    }
};

std::mutex lock;
std::map<std::string, std::shared_ptr<Group>> groups;
Alive<Rank> ranks;

} // namespace nccl

extern "C" int ncclGetVersion(int *version) {
    *version = 22703;
    return nccl::SUCCESS;
}

extern "C" const char *ncclGetErrorString(int code) { return code == nccl::INVALID_USAGE ? "invalid usage" : "invalid argument"; }

extern "C" int ncclGetUniqueId(nccl::Id *id) {
    static int last = 0;
    std::lock_guard<std::mutex> guard(nccl::lock);
    memset(id->bytes, 0xa5, sizeof id->bytes);
    snprintf(id->bytes, sizeof id->bytes, "group %d", ++last);
    nccl::groups[std::string(id->bytes, sizeof id->bytes)] = std::make_shared<nccl::Group>();
    return nccl::SUCCESS;
}

extern "C" int ncclCommInitRank(void **comm, int count, nccl::Id id, int number) {
    std::shared_ptr<nccl::Group> group;
    {
        std::lock_guard<std::mutex> guard(nccl::lock);
        auto found = nccl::groups.find(std::string(id.bytes, sizeof id.bytes));
        if (!is_inside() || found == nccl::groups.end()) return nccl::INVALID_ARGUMENT;
        group = found->second;
        std::lock_guard<std::mutex> of_group(group->lock);
        if (number < 0 || number >= count || !group->joined.insert(number).second) return nccl::INVALID_USAGE;
        group->ranks = count;
    }
    group->meet();
    nccl::Rank *made = nccl::ranks.make();
    made->group = group, made->number = number, made->of = here();
    *comm = made;
    return nccl::SUCCESS;
}

extern "C" int ncclCommDestroy(void *comm) { return nccl::ranks.destroy(comm) ? nccl::SUCCESS : nccl::INVALID_ARGUMENT; }

extern "C" int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation, void *comm, void *on) {
    nccl::Rank *rank = nccl::ranks.find(comm);
    if (!is_inside() || !rank || rank->of != here() || type != 7 || operation != 0) return nccl::INVALID_ARGUMENT;
    Stream *stream = own(on);
    bool is_there = device.has(uintptr_t(from), count * 4) && device.has(uintptr_t(to), count * 4);
    if (!stream || !is_there) return nccl::INVALID_ARGUMENT;
    auto *part = static_cast<const float *>(from);
    auto *sum = static_cast<float *>(to);
    nccl::Rank own_rank = *rank;
    cupti::Call call(307);
    cupti::launch(stream, call, {"ncclDevKernel_AllReduce_Sum_f32_simulated", [=]() mutable {
                      std::vector<float> all(count);
                      auto add = [&](std::vector<const float *> parts) {
                          for (auto *part : parts) for (size_t i = 0; i < count; i++) all[i] += part[i];
                      };
                      own_rank.exchange("all_reduce of " + std::to_string(count), part, add,
                                        [&] { memcpy(sum, all.data(), count * 4); });
                  }}, 1, 512);
    return nccl::SUCCESS;
}

extern "C" int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *on) {
    nccl::Rank *rank = nccl::ranks.find(comm);
    if (!is_inside() || !rank || rank->of != here() || type != 7) return nccl::INVALID_ARGUMENT;
    Stream *stream = own(on);
    size_t ranks = size_t(rank->group->ranks);
    bool is_there = device.has(uintptr_t(from), count * 4) && device.has(uintptr_t(to), ranks * count * 4);
    if (!stream || !is_there) return nccl::INVALID_ARGUMENT;
    auto *part = static_cast<const float *>(from);
    auto *all = static_cast<float *>(to);
    nccl::Rank own_rank = *rank;
    cupti::Call call(307);
    cupti::launch(stream, call, {"ncclDevKernel_AllGather_simulated", [=]() mutable {
                      std::vector<float> side(ranks * count);
                      auto gather = [&](std::vector<const float *> parts) {
                          for (size_t i = 0; i < parts.size(); i++) memcpy(&side[i * count], parts[i], count * 4);
                      };
                      own_rank.exchange("all_gather of " + std::to_string(count), part, gather,
                                        [&] { memcpy(all, side.data(), side.size() * 4); });
                  }}, 1, 512);
    return nccl::SUCCESS;
}
