// AMX's tile registers in plain C: what compiled kernels call in place of the instructions (test/unit/passes/vector/test_amx.py).
// Shapes that the instructions refuse trap here too.

typedef unsigned char u8;
typedef unsigned short u16;

static _Thread_local u8 rows[16], tiles[8][16][64];
static _Thread_local u16 bytes[16];
static long count;

static void check(int ok) {
    if (!ok) __builtin_trap();
}

static void clear(int t) {
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 64; c++) tiles[t][r][c] = 0;
}

long emulated_count(void) { return __atomic_exchange_n(&count, 0, __ATOMIC_SEQ_CST); }

void emulated_ldtilecfg(const u8 *p) {
    check(p[0] == 1 && p[1] == 0);
    for (int t = 0; t < 16; t++) {
        bytes[t] = p[16 + 2 * t] | p[17 + 2 * t] << 8;
        rows[t] = p[48 + t];
        check(bytes[t] <= 64 && rows[t] <= 16 && (t < 8 || (!bytes[t] && !rows[t])));
    }
    for (int t = 0; t < 8; t++) clear(t);
}

void emulated_tilerelease(void) {
    for (int t = 0; t < 16; t++) rows[t] = bytes[t] = 0;
}

void emulated_tilezero(u8 t) {
    check(rows[t] && bytes[t]);
    clear(t);
}

void emulated_tileloadd64(u8 t, const u8 *p, long stride) {
    check(rows[t] && bytes[t]);
    clear(t);
    for (int r = 0; r < rows[t]; r++)
        for (int c = 0; c < bytes[t]; c++) tiles[t][r][c] = p[r * stride + c];
}

void emulated_tilestored64(u8 t, u8 *p, long stride) {
    check(rows[t] && bytes[t]);
    for (int r = 0; r < rows[t]; r++)
        for (int c = 0; c < bytes[t]; c++) p[r * stride + c] = tiles[t][r][c];
}

static void shapes(u8 sum, u8 a, u8 b) {
    check(rows[a] == rows[sum] && bytes[b] == bytes[sum] && rows[b] * 4 == bytes[a]);
    check(sum != a && sum != b && a != b);
    __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
}

static float number(u16 bits) {
    union { unsigned u; float f; } x = {(unsigned)bits << 16};
    return x.f;
}

void emulated_tdpbf16ps(u8 sum, u8 a, u8 b) {
    shapes(sum, a, b);
    for (int m = 0; m < rows[sum]; m++)
        for (int k = 0; k < rows[b]; k++)
            for (int n = 0; n < bytes[sum] / 4; n++) {
                const u16 *x = (const u16 *)tiles[a][m] + 2 * k, *y = (const u16 *)tiles[b][k] + 2 * n;
                ((float *)tiles[sum][m])[n] += number(x[0]) * number(y[0]) + number(x[1]) * number(y[1]);
            }
}

#define BYTES(name, left, right)                                                                             \
    void emulated_##name(u8 sum, u8 a, u8 b) {                                                               \
        shapes(sum, a, b);                                                                                   \
        for (int m = 0; m < rows[sum]; m++)                                                                  \
            for (int k = 0; k < rows[b]; k++)                                                                \
                for (int n = 0; n < bytes[sum] / 4; n++)                                                     \
                    for (int i = 0; i < 4; i++)                                                              \
                        ((int *)tiles[sum][m])[n] += ((left *)tiles[a][m])[4 * k + i] * ((right *)tiles[b][k])[4 * n + i]; \
    }
BYTES(tdpbusd, u8, signed char)
BYTES(tdpbssd, signed char, signed char)
BYTES(tdpbsud, signed char, u8)
BYTES(tdpbuud, u8, u8)
