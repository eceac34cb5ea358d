// A CUDA driver without a device, for tests: the calls that the engine makes, over the engine's own kernels on one core, which
// stands for two devices; and beside it, in one library, cuBLASLt and NCCL over the same memory and streams. It is
// strict where a real driver is, or where it would only be undefined: memory ends at a page that may not be touched, what was
// freed is gone, new memory holds no numbers, pinned memory is copied when the stream comes to it, no call is made outside of
// a context, and none that may not be while a stream is captured. Its times are those of this core and say nothing of a GPU.

#include "cupti.h"

#include "cublaslt.h"
#include "nccl.h"

#define CALL extern "C" int

#define INSIDE                                                                                                         \
    if (!is_inside()) return INVALID_CONTEXT
#define NOT_CAPTURING                                                                                                  \
    if (capturing) return CAPTURE_UNSUPPORTED

CALL cuInit(unsigned flags) {
    const char *asked = getenv("STRATO_SIMULATED_CUDA");
    if (asked && !strcmp(asked, "none")) return NO_DEVICE;
    signal(SIGSEGV, outside);
    return flags ? INVALID_VALUE : OK;
}

CALL cuDriverGetVersion(int *version) {
    *version = 13000;
    return OK;
}

CALL cuGetErrorName(int code, const char **name) {
    static const std::map<int, const char *> NAMES = {
        {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
        {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"}, {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"}, {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}};
    auto found = NAMES.find(code);
    if (found == NAMES.end()) return INVALID_VALUE;
    *name = found->second;
    return OK;
}

CALL cuDeviceGetCount(int *count) {
    *count = DEVICES;
    return OK;
}

CALL cuDeviceGet(int *found, int number) {
    *found = number;
    return number >= 0 && number < DEVICES ? OK : INVALID_DEVICE;
}

CALL cuDeviceGetName(char *name, int room, int) {
    snprintf(name, size_t(room), "one core behind the CUDA driver's calls (simulated)");
    return OK;
}

CALL cuDeviceGetPCIBusId(char *bus, int room, int) {
    snprintf(bus, size_t(room), "0000:c2:00.0");
    return OK;
}

CALL cuDeviceTotalMem_v2(size_t *bytes, int) {
    *bytes = MEMORY;
    return OK;
}

CALL cuDeviceGetAttribute(int *value, int which, int) {
    static const std::map<int, int> ATTRIBUTES = {{16, 1}, {38, 1 << 20}, {75, 8}, {76, 0}};
    auto found = ATTRIBUTES.find(which);
    if (found == ATTRIBUTES.end()) return INVALID_VALUE;
    *value = found->second;
    return OK;
}

CALL cuDevicePrimaryCtxRetain(void **context, int number) {
    *context = reinterpret_cast<void *>(CONTEXT + uintptr_t(number));
    return number >= 0 && number < DEVICES ? OK : INVALID_DEVICE;
}

CALL cuDevicePrimaryCtxRelease_v2(int) { return OK; }

CALL cuCtxSetCurrent(void *context) {
    entered = uintptr_t(context);
    return is_inside() ? OK : INVALID_CONTEXT;
}

CALL cuMemGetInfo_v2(size_t *free, size_t *total) {
    INSIDE;
    *total = MEMORY;
    *free = MEMORY - device.used[here()];
    return OK;
}

CALL cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
    INSIDE;
    NOT_CAPTURING;
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > MEMORY - device.used[here()]) return OUT_OF_MEMORY;
    *address = device.add(bytes);
    return *address ? OK : OUT_OF_MEMORY;
}

CALL cuMemFree_v2(unsigned long long address) {
    INSIDE;
    NOT_CAPTURING;
    return device.remove(address) ? OK : INVALID_VALUE;
}

CALL cuMemAllocHost_v2(void **address, size_t bytes) {
    INSIDE;
    NOT_CAPTURING;
    if (bytes == 0) return INVALID_VALUE;
    *address = reinterpret_cast<void *>(pinned.add(bytes));
    return *address ? OK : OUT_OF_MEMORY;
}

CALL cuMemFreeHost(void *address) {
    INSIDE;
    NOT_CAPTURING;
    return pinned.remove(uintptr_t(address)) ? OK : INVALID_VALUE;
}

CALL cuMemsetD8Async(unsigned long long address, unsigned char value, size_t bytes, void *handle) {
    INSIDE;
    Stream *stream = open(handle);
    if (!stream) return INVALID_HANDLE;
    if (!device.has(address, bytes)) return INVALID_VALUE;
    cupti::Call call(216);
    Work work = {};
    work.kind = cupti::MEMSET, work.bytes = bytes;
    cupti::enqueue(stream, call, {"memset", [=] { memset(reinterpret_cast<void *>(address), value, bytes); }, work});
    return OK;
}

static Work copied(size_t bytes, uint8_t direction, bool is_pinned) {
    Work work = {};
    work.kind = cupti::MEMCPY, work.bytes = bytes, work.direction = direction, work.host = is_pinned ? 2 : 1;
    return work;
}

CALL cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *handle) {
    INSIDE;
    Stream *stream = open(handle);
    if (!stream) return INVALID_HANDLE;
    if (!device.has(to, bytes)) return INVALID_VALUE;
    void *target = reinterpret_cast<void *>(to);
    bool is_pinned = pinned.has(uintptr_t(from), bytes, true);
    cupti::Call call(277);
    Work work = copied(bytes, 1, is_pinned);
    if (is_pinned) {
        cupti::enqueue(stream, call, {"copy", [=] { memcpy(target, from, bytes); }, work});
    } else {
        std::string staged(static_cast<const char *>(from), bytes);
        cupti::enqueue(stream, call, {"copy", [=] { memcpy(target, staged.data(), bytes); }, work});
    }
    return OK;
}

CALL cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *handle) {
    INSIDE;
    Stream *stream = open(handle);
    if (!stream) return INVALID_HANDLE;
    if (!device.has(from, bytes)) return INVALID_VALUE;
    bool is_pinned = pinned.has(uintptr_t(to), bytes, true);
    cupti::Call call(279);
    cupti::enqueue(stream, call,
                   {"copy", [=] { memcpy(to, reinterpret_cast<void *>(from), bytes); }, copied(bytes, 2, is_pinned)});
    if (!is_pinned) stream->wait();
    return OK;
}

CALL cuStreamCreate(void **stream, unsigned flags) {
    INSIDE;
    if (flags > 1) return INVALID_VALUE;
    *stream = streams.make();
    return OK;
}

CALL cuStreamDestroy_v2(void *stream) {
    INSIDE;
    return streams.destroy(stream) ? OK : INVALID_HANDLE;
}

CALL cuStreamSynchronize(void *handle) {
    INSIDE;
    NOT_CAPTURING;
    Stream *stream = open(handle);
    if (!stream) return INVALID_HANDLE;
    cupti::Call call(126);
    stream->wait();
    return OK;
}

CALL cuEventCreate(void **event, unsigned flags) {
    INSIDE;
    if (flags) return INVALID_VALUE;
    *event = events.make();
    return OK;
}

CALL cuEventDestroy_v2(void *event) {
    INSIDE;
    return events.destroy(event) ? OK : INVALID_HANDLE;
}

CALL cuEventRecord(void *handle, void *on) {
    INSIDE;
    Event *event = events.find(handle);
    Stream *stream = open(on);
    if (!event || !stream) return INVALID_HANDLE;
    cupti::Call call(119);
    {
        std::lock_guard<std::mutex> guard(event->lock);
        event->is_recorded = true, event->has_happened = false;
    }
    stream->add({"event", [=] {
                     std::lock_guard<std::mutex> guard(event->lock);
                     event->at = now(), event->has_happened = true;
                 }});
    return OK;
}

CALL cuEventElapsedTime(float *milliseconds, void *from, void *to) {
    INSIDE;
    Event *start = events.find(from), *end = events.find(to);
    if (!start || !end || !start->is_recorded || !end->is_recorded) return INVALID_HANDLE;
    if (!start->has_happened || !end->has_happened) return NOT_READY;
    *milliseconds = float(double(end->at - start->at) / 1e6);
    return OK;
}

CALL cuModuleLoadDataEx(void **handle, const void *image, unsigned, int *, void **) {
    INSIDE;
    cupti::Call call(20);
    const char *text = static_cast<const char *>(image);
    Module *module = modules.make();
    if (!memcmp(text, "\177ELF", 4)) {
        // Of machine code only the names are looked at; where they lie in it its header says.
        uint64_t sections;
        memcpy(&sections, text + 40, 8);
        module->image.assign(text, sections);
    } else {
        module->image = text;
        if (module->image.find(".version") == std::string::npos) return INVALID_IMAGE;
    }
    *handle = module;
    return OK;
}

CALL cuModuleUnload(void *module) {
    INSIDE;
    return modules.destroy(module) ? OK : INVALID_HANDLE;
}

CALL cuModuleGetFunction(void **handle, void *of, const char *name) {
    INSIDE;
    Module *module = modules.find(of);
    if (!module) return INVALID_HANDLE;
    bool is_text = module->image[0] != '\177';
    std::string entry = is_text ? std::string(".entry ") + name + "(" : std::string(name);
    auto found = KERNELS.find(name);
    if (module->image.find(entry) == std::string::npos || found == KERNELS.end()) return NOT_FOUND;
    Function *function = functions.make();
    function->name = name, function->bind = &found->second;
    *handle = function;
    return OK;
}

CALL cuLaunchKernel(void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                    unsigned shared, void *on, void **arguments, void **extra) {
    INSIDE;
    Function *function = functions.find(handle);
    Stream *stream = own(on);
    if (!function || function->of != here() || !stream) return INVALID_HANDLE;
    if (!gx || gx > 0x7fffffff || !gy || gy > 65535 || gz != 1 || !bx || bx > 1024 || by != 1 || bz != 1) {
        return INVALID_VALUE;
    }
    if (shared || !arguments || extra) return INVALID_VALUE;
    cupti::Call call(307);
    Bound bound = (*function->bind)(arguments);
    std::string name = function->name;
    Command command{name, [=] {
                        std::lock_guard<std::mutex> guard(one);
                        running = name.c_str();
                        gridDim = {gx, gy, 1}, blockDim = {bx, 1, 1};
                        fibers::run_grid(bound, running);
                        running = "no kernel";
                    }};
    cupti::launch(stream, call, command, gx, bx, gy);
    return OK;
}

CALL cuStreamBeginCapture_v2(void *handle, int mode) {
    INSIDE;
    Stream *stream = open(handle);
    if (!stream) return INVALID_HANDLE;
    if (mode != 1) return INVALID_VALUE;
    stream->is_capturing = true, stream->is_broken = false, capturing = 1;
    stream->captured.clear();
    return OK;
}

CALL cuStreamEndCapture(void *handle, void **graph) {
    INSIDE;
    Stream *stream = own(handle);
    if (!stream || !stream->is_capturing) return INVALID_HANDLE;
    cupti::Call call(497);
    stream->is_capturing = false, capturing = 0;
    if (stream->is_broken) return CAPTURE_UNSUPPORTED;
    Graph *made = graphs.make();
    *made = stream->captured;
    *graph = made;
    return OK;
}

CALL cuGraphInstantiateWithFlags(void **handle, void *of, unsigned long long flags) {
    INSIDE;
    Graph *graph = graphs.find(of);
    if (!graph) return INVALID_HANDLE;
    if (flags) return INVALID_VALUE;
    cupti::Call call(643);
    Graph *made = executables.make();
    *made = *graph;
    for (Command &command : *made) command.work.node = cupti::node(cupti::CLONED, command.work.node);
    *handle = made;
    return OK;
}

CALL cuGraphLaunch(void *handle, void *on) {
    INSIDE;
    Graph *graph = executables.find(handle);
    Stream *stream = open(on);
    if (!graph || !stream) return INVALID_HANDLE;
    cupti::Call call(514);
    cupti::replay(stream, call, *graph);
    return OK;
}

CALL cuGraphDestroy(void *graph) {
    INSIDE;
    return graphs.destroy(graph) ? OK : INVALID_HANDLE;
}

CALL cuGraphExecDestroy(void *graph) {
    INSIDE;
    return executables.destroy(graph) ? OK : INVALID_HANDLE;
}
