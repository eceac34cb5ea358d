// The choice of the next token. A group has a row of logits; of equal ones the first is taken.

kernel void argmax(global const float *logits, global uint *chosen, ulong width) {
    local float values[LANES];
    local uint places[LANES];
    global const float *row = logits + GROUP * width;
    float best = -INFINITY;
    uint place = 0;
    for (size_t i = LANE; i < width; i += LANES) {
        if (row[i] > best) {
            best = row[i];
            place = i;
        }
    }
    values[LANE] = best;
    places[LANE] = place;
    for (size_t half_ = LANES / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (LANE < half_) {
            float other = values[LANE + half_];
            uint there = places[LANE + half_];
            if (other > values[LANE] || (other == values[LANE] && there < places[LANE])) {
                values[LANE] = other;
                places[LANE] = there;
            }
        }
    }
    if (LANE == 0) chosen[GROUP] = places[0];
}

