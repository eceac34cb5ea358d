/* A driver's library with one device (or -DDEVICES=2, alike), for tests on machines that have none. Only what is asked for here is there, so that a
   function that an older driver lacks is one, too. -DDEVICE_STATUS=15 is a device that is lost, 3 one that supports nothing;
   -DHOPPER has units that count. Structures and numbers: NVML reference R590. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef DEVICE_STATUS
#define DEVICE_STATUS 0
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef NAME
#define NAME "NVIDIA Pretended 1"
#endif
#define NOT_SUPPORTED 3
#define INSUFFICIENT_SIZE 7

typedef unsigned long long u64;
typedef void *Handle;
static unsigned looks;

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *out, unsigned size) { return snprintf(out, size, "580.65.06") < 0; }
int nvmlSystemGetNVMLVersion(char *out, unsigned size) { return snprintf(out, size, "13.580.65.06") < 0; }
int nvmlDeviceGetCount_v2(unsigned *out) { *out = DEVICES; return 0; }
static unsigned cards[DEVICES];
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle *out) {
    if (index >= DEVICES) return 2;
    cards[index] = index;
    *out = &cards[index];
    return 0;
}
#ifdef BUS
/* The cards stand at 0000:C1:00.0 and the next ones. */
struct PciInfo { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(Handle d, struct PciInfo *out) {
    memset(out, 0, sizeof *out);
    out->bus = 0xc1 + *(unsigned *)d;
    snprintf(out->legacy, sizeof out->legacy, "0000:%02X:00.0", out->bus);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
    return 0;
}
#endif
int nvmlDeviceGetName(Handle d, char *out, unsigned size) { return snprintf(out, size, "%s", NAME) < 0; }

int nvmlDeviceGetUtilizationRates(Handle d, unsigned *out) { looks++; out[0] = 87; out[1] = 42; return DEVICE_STATUS; }
int nvmlDeviceGetMemoryInfo_v2(Handle d, u64 *out) {
    /* version, total, reserved, free, used */
    out[1] = 80ull << 30; out[2] = 1ull << 30; out[3] = 70ull << 30; out[4] = 9ull << 30;
    return DEVICE_STATUS;
}
int nvmlDeviceGetPowerUsage(Handle d, unsigned *out) { *out = 312500; return DEVICE_STATUS; }
/* 40 J from look to look. */
int nvmlDeviceGetTotalEnergyConsumption(Handle d, u64 *out) { *out = 1000000ull + 40000ull * looks; return DEVICE_STATUS; }
int nvmlDeviceGetEnforcedPowerLimit(Handle d, unsigned *out) { *out = 700000; return DEVICE_STATUS; }
int nvmlDeviceGetTemperature(Handle d, int sensor, unsigned *out) { *out = 61; return DEVICE_STATUS; }
int nvmlDeviceGetClockInfo(Handle d, int which, unsigned *out) { *out = which == 2 ? 2619 : 1755; return DEVICE_STATUS; }
int nvmlDeviceGetMaxClockInfo(Handle d, int which, unsigned *out) { *out = 1980; return DEVICE_STATUS; }
/* Idle (1), the cap of power (4) and heat (64). */
int nvmlDeviceGetCurrentClocksThrottleReasons(Handle d, u64 *out) { *out = 1 | 4 | 64; return DEVICE_STATUS; }
int nvmlDeviceGetPcieThroughput(Handle d, int which, unsigned *out) { *out = which == 0 ? 2000 : 3000; return DEVICE_STATUS; }
int nvmlDeviceGetCurrPcieLinkGeneration(Handle d, unsigned *out) { *out = 5; return DEVICE_STATUS; }
int nvmlDeviceGetCurrPcieLinkWidth(Handle d, unsigned *out) { *out = 16; return DEVICE_STATUS; }
/* nvmlDeviceGetPcieReplayCounter is none of this driver's. */
int nvmlDeviceGetNvLinkState(Handle d, unsigned link, int *out) {
    *out = link != 3;
    return DEVICE_STATUS ? DEVICE_STATUS : link < 6 ? 0 : NOT_SUPPORTED;
}

struct Process { unsigned pid; u64 memory; unsigned gpu, compute; };
int nvmlDeviceGetComputeRunningProcesses_v3(Handle d, unsigned *count, struct Process *out) {
    if (DEVICE_STATUS) return DEVICE_STATUS;
    unsigned room = *count;
    *count = 2;
    if (out == NULL || room < 2) return INSUFFICIENT_SIZE;
    out[0] = (struct Process){1, 5ull << 20, ~0u, ~0u};
    out[1] = (struct Process){(unsigned)getpid(), 7ull << 20, ~0u, ~0u};
    return 0;
}

struct Metric { unsigned id; int status; double value; char *names[3]; };
struct Metrics { unsigned version, count; unsigned *from, *to; struct Metric metrics[]; };
static unsigned samples[64], used;

int nvmlGpmQueryDeviceSupport(Handle d, unsigned *out) {
#ifdef HOPPER
    out[1] = 1;
#else
    out[1] = 0;
#endif
    return DEVICE_STATUS;
}
int nvmlGpmSampleAlloc(unsigned **out) { *out = &samples[used++ % 64]; return 0; }
int nvmlGpmSampleFree(unsigned *sample) { return 0; }
int nvmlGpmSampleGet(Handle d, unsigned *sample) { *sample = looks; return DEVICE_STATUS; }
int nvmlGpmMetricsGet(struct Metrics *asked) {
    if (*asked->to <= *asked->from) return 2;
    for (unsigned i = 0; i < asked->count; i++) {
        struct Metric *metric = &asked->metrics[i];
        /* Units of single precision are counted by none of this kind, and the links are not up. */
        metric->status = metric->id == 12 ? NOT_SUPPORTED : 0;
        metric->value = metric->id == 10 ? 63.5 : metric->id == 60 ? 0.0 / 0.0 : metric->id;
        memset(metric->names, 0, sizeof metric->names);
    }
    return 0;
}
