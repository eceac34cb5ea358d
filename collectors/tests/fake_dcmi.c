/* A simulated DCMI with two cards of two devices each, for tests on machines that have none. -DOLD lacks what older drivers lack,
   -DBROKEN does not begin. Structures: dcmi_interface_api.h of mind-cluster. Other devices than those there are refused. */
#define NOT_SUPPORTED -8255
#define INVALID -8001

struct hbm { unsigned long long size; unsigned int freq; unsigned long long used; int temp; unsigned int bandwidth; };
struct aicore { unsigned int freq, cur_freq; };

static int begun;
static int is(int card, int device) { return begun && (card == 3 || card == 5) && (device == 0 || device == 1); }

#ifdef BROKEN
int dcmi_init(void) { return -8005; }
#else
int dcmi_init(void) { begun = 1; return 0; }
#endif
int dcmi_get_card_list(int *count, int *cards, int room) {
    if (!begun || room < 2) return INVALID;
    *count = 2; cards[0] = 3; cards[1] = 5;
    return 0;
}
int dcmi_get_device_num_in_card(int card, int *count) { *count = 2; return is(card, 0) ? 0 : INVALID; }
#ifndef OLD
int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned number) {
    if (!begun || number > 3) return INVALID;
    *card = number < 2 ? 3 : 5; *device = number % 2;
    return 0;
}
int dcmi_get_device_errorcode_v2(int card, int device, int *count, unsigned *codes, unsigned room) {
    if (!is(card, device) || room < 2) return INVALID;
    *count = 2; codes[0] = 0x80e01801; codes[1] = 0x80e18400;
    return 0;
}
#endif
int dcmi_get_device_utilization_rate(int card, int device, int unit, unsigned *share) {
    if (!is(card, device)) return INVALID;
    if (unit == 12) return NOT_SUPPORTED;
    *share = unit == 2 ? 73 + card + device : unit == 6 ? 51 : unit == 10 ? 64 : 0;
    return unit == 2 || unit == 6 || unit == 10 ? 0 : INVALID;
}
int dcmi_get_device_hbm_info(int card, int device, struct hbm *out) {
    if (!is(card, device)) return INVALID;
    out->size = 65536; out->freq = 1600; out->used = 3072; out->temp = 47; out->bandwidth = 64;
    return 0;
}
int dcmi_get_device_power_info(int card, int device, int *tenths) { *tenths = 953; return is(card, device) ? 0 : INVALID; }
int dcmi_get_device_temperature(int card, int device, int *out) { *out = 44; return is(card, device) ? 0 : INVALID; }
int dcmi_get_device_aicore_info(int card, int device, struct aicore *out) {
    if (!is(card, device)) return INVALID;
    out->freq = 1850; out->cur_freq = 1500;
    return 0;
}
int dcmi_get_device_health(int card, int device, unsigned *out) { *out = 1; return is(card, device) ? 0 : INVALID; }
