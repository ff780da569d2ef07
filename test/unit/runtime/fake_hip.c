/* A stand-in for libamdhip64: two devices whose memory is host memory, a stream each, graphs as lists of calls, kernels
   known by name. Every argument is checked; what is wrong is reported as hipErrorInvalidValue (1). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 1, NOT_INITIALIZED = 3, NO_DEVICE = 101, NOT_FOUND = 500, DEVICES = 2, STREAM_TAG = 0x57EA, GRAPH_TAG = 0x6A, EXEC_TAG = 0x6B };
typedef struct { void *start; size_t size; int device; } Block;
typedef struct { int kind; void *to; const void *from; size_t size; int kernel; uint64_t params[8]; unsigned grid[3], block[3]; } Call;
typedef struct { int tag, count; Call calls[256]; } Graph;
static int initialized, current, capturing, live_graphs, live_streams, live_modules;
static Block blocks[256];
static int stream_objects[DEVICES] = {STREAM_TAG, STREAM_TAG}, module_object = 0x30D, event_object = 0xE7;
static Graph captured;
static int launches, replays;
static char functions[2] = {0, 1};

int fake_launches(void) { return launches; }
int fake_replays(void) { return replays; }
int fake_live_blocks(void) { int n = 0; for (int i = 0; i < 256; i++) n += blocks[i].start != 0; return n; }
int fake_live_graphs(void) { return live_graphs; }
int fake_live_streams(void) { return live_streams; }
int fake_live_modules(void) { return live_modules; }

static int device_of(const void *stream) {
  for (int i = 0; i < DEVICES; i++) if (stream == &stream_objects[i]) return i;
  return -1;
}

static int inside(const void *p, size_t n, int device) {
  for (int i = 0; i < 256; i++)
    if (blocks[i].start && blocks[i].device == device && (char *)p >= (char *)blocks[i].start && (char *)p + n <= (char *)blocks[i].start + blocks[i].size) return 1;
  return 0;
}

static void perform(const Call *c) {
  if (c->kind == 0) { memmove(c->to, c->from, c->size); return; }
  launches++;
  const float *x = (const float *)c->params[0];
  float *y = (float *)c->params[1];
  int64_t n = (int64_t)c->params[2];
  for (int64_t i = 0; i < n; i++) y[i] = c->kernel ? x[i] + 1 : 2 * x[i];
}

static int submit(void *stream, const Call *c) {
  if (device_of(stream) < 0) return INVALID;
  if (!capturing) { perform(c); return OK; }
  if (captured.count == 256) return INVALID;
  captured.calls[captured.count++] = *c;
  return OK;
}

int hipInit(unsigned flags) { initialized = 1; return flags ? INVALID : OK; }
int hipGetDeviceCount(int *n) { *n = DEVICES; return !initialized ? NOT_INITIALIZED : OK; }
int hipSetDevice(int n) {
  if (!initialized || n < 0 || n >= DEVICES) return initialized ? NO_DEVICE : NOT_INITIALIZED;
  current = n;
  return OK;
}
int hipGetDevice(int *n) { *n = current; return !initialized ? NOT_INITIALIZED : OK; }
int hipGetDevicePropertiesR0600(void *out, int n) {
  if (n < 0 || n >= DEVICES) return NO_DEVICE;
  memset(out, 0, 2048);
  strcpy(out, "Fake AMD device");
  strcpy((char *)out + 1160, "gfx942:sramecc+:xnack-");
  return OK;
}
const char *hipGetErrorName(int e) { return e == NOT_FOUND ? "hipErrorNotFound" : "hipErrorInvalidValue"; }
const char *hipGetErrorString(int e) { return e == NOT_FOUND ? "named symbol not found" : "invalid argument"; }
int hipStreamCreate(void **s) { if (!initialized) return NOT_INITIALIZED; live_streams++; *s = &stream_objects[current]; return OK; }
int hipStreamDestroy(void *s) { if (device_of(s) < 0) return INVALID; live_streams--; return OK; }
int hipModuleUnload(void *m) { if (m != &module_object) return INVALID; live_modules--; return OK; }
int hipStreamSynchronize(void *s) { return (!s || device_of(s) >= 0) && !capturing ? OK : INVALID; }
int hipDeviceSynchronize(void) { return capturing ? INVALID : OK; }
int hipModuleLoadData(void **m, const void *image) {
  if (memcmp(image, "\x7f" "ELF", 4)) return 200;
  *m = &module_object;
  live_modules++;
  return OK;
}
int hipModuleGetFunction(void **f, void *m, const char *name) {
  if (m != &module_object) return INVALID;
  if (!strcmp(name, "twice")) *f = &functions[0];
  else if (!strcmp(name, "increment")) *f = &functions[1];
  else return NOT_FOUND;
  return OK;
}
int hipModuleLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **params, void **extra) {
  if ((f != &functions[0] && f != &functions[1]) || extra || !gx || gy != 1 || gz != 1 || bx != 64 || by != 1 || bz != 1 || shared > 65536)
    return INVALID;
  Call c = {.kind = 1, .kernel = f == &functions[1], .grid = {gx, gy, gz}, .block = {bx, by, bz}};
  for (int i = 0; i < 3; i++) memcpy(&c.params[i], params[i], 8);
  size_t bytes = (size_t)c.params[2] * 4;
  int d = device_of(stream);
  if (!inside((void *)c.params[0], bytes, d) || !inside((void *)c.params[1], bytes, d) || c.params[2] > (uint64_t)gx * 64) return INVALID;
  return submit(stream, &c);
}
int hipMalloc(void **p, size_t size) {
  for (int i = 0; i < 256; i++)
    if (!blocks[i].start) {
      blocks[i].start = *p = aligned_alloc(256, (size + 255) / 256 * 256);
      blocks[i].size = size;
      blocks[i].device = current;
      memset(*p, 0xff, size);
      return *p ? OK : 2;
    }
  return 2;
}
int hipFree(void *p) {
  for (int i = 0; i < 256; i++)
    if (p && blocks[i].start == p) { free(p); blocks[i].start = 0; return OK; }
  return INVALID;
}
int hipMemcpyHtoDAsync(void *to, void *from, size_t n, void *s) {
  Call c = {.to = to, .from = from, .size = n};
  return inside(to, n, device_of(s)) && from ? submit(s, &c) : INVALID;
}
int hipMemcpyDtoHAsync(void *to, void *from, size_t n, void *s) {
  Call c = {.to = to, .from = from, .size = n};
  return inside(from, n, device_of(s)) && to ? submit(s, &c) : INVALID;
}
int hipMemcpyDtoDAsync(void *to, void *from, size_t n, void *s) {
  Call c = {.to = to, .from = from, .size = n};
  return inside(from, n, device_of(s)) && inside(to, n, device_of(s)) ? submit(s, &c) : INVALID;
}
int hipMemcpyPeerAsync(void *to, int to_device, void *from, int from_device, size_t n, void *s) {
  Call c = {.to = to, .from = from, .size = n};
  return inside(from, n, from_device) && inside(to, n, to_device) && to_device == device_of(s) ? submit(s, &c) : INVALID;
}
int hipStreamBeginCapture(void *s, int mode) {
  if (device_of(s) < 0 || mode < 0 || mode > 2 || capturing) return INVALID;
  capturing = 1;
  captured.tag = GRAPH_TAG;
  captured.count = 0;
  return OK;
}
int hipStreamEndCapture(void *s, void **graph) {
  if (device_of(s) < 0 || !capturing) return INVALID;
  capturing = 0;
  Graph *g = malloc(sizeof captured);
  *g = captured;
  *graph = g;
  return OK;
}
int hipGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  if (((Graph *)graph)->tag != GRAPH_TAG || flags) return INVALID;
  Graph *g = malloc(sizeof *g);
  *g = *(Graph *)graph;
  g->tag = EXEC_TAG;
  *exec = g;
  live_graphs++;
  return OK;
}
int hipGraphDestroy(void *graph) { if (((Graph *)graph)->tag != GRAPH_TAG) return INVALID; free(graph); return OK; }
int hipGraphLaunch(void *exec, void *s) {
  Graph *g = exec;
  if (g->tag != EXEC_TAG || device_of(s) < 0 || capturing) return INVALID;
  replays++;
  for (int i = 0; i < g->count; i++) perform(&g->calls[i]);
  return OK;
}
int hipGraphExecDestroy(void *exec) { if (((Graph *)exec)->tag != EXEC_TAG) return INVALID; free(exec); live_graphs--; return OK; }
int hipEventCreate(void **e) { *e = &event_object; return OK; }
int hipEventRecord(void *e, void *s) { return e == &event_object && device_of(s) >= 0 ? OK : INVALID; }
int hipEventSynchronize(void *e) { return e == &event_object ? OK : INVALID; }
int hipEventElapsedTime(float *ms, void *a, void *b) { *ms = 1.5f; return a == &event_object && b == &event_object ? OK : INVALID; }
int hipEventDestroy(void *e) { return e == &event_object ? OK : INVALID; }

/* CUDA alone: contexts, of which a thread has a stack; attributes of devices. */
static int contexts[DEVICES], stack[64], depth;
int fake_current(void) { return depth ? stack[depth - 1] : -1; }
static int context_number(const void *context) {
  for (int i = 0; i < DEVICES; i++) if (context == &contexts[i]) return i;
  return -1;
}
static int put(int place, const void *context) {
  int n = context_number(context);
  if (n < 0 || place >= 64) return INVALID;
  stack[place] = current = n;
  depth = place + 1;
  return OK;
}
int cuDeviceGet(int *device, int n) { *device = n; return initialized && n >= 0 && n < DEVICES ? OK : NO_DEVICE; }
int cuDeviceGetAttribute(int *value, int which, int n) { *value = which == 75 ? 9 : which == 76 ? 0 : 132; return n < DEVICES ? OK : NO_DEVICE; }
int cuDevicePrimaryCtxRetain(void **context, int n) { *context = &contexts[n]; return n >= 0 && n < DEVICES ? OK : NO_DEVICE; }
int cuDriverGetVersion(int *version) { *version = 12000; return OK; }
int cuCtxSetCurrent(void *context) { return put(depth ? depth - 1 : 0, context); }
int cuCtxPushCurrent_v2(void *context) { return put(depth, context); }
int cuCtxPopCurrent_v2(void **context) {
  if (!depth) return INVALID;
  *context = &contexts[stack[--depth]];
  if (depth) current = stack[depth - 1];
  return OK;
}
int cuMemcpyPeerAsync(void *to, void *to_context, void *from, void *from_context, size_t n, void *s) {
  return hipMemcpyPeerAsync(to, context_number(to_context), from, context_number(from_context), n, s);
}

/* Nodes of graphs, numbered from 1. Structures as in cuda.h. */
typedef struct { void *function; unsigned gx, gy, gz, bx, by, bz, shared; void **params, **extra; void *kernel, *context; } KernelNode;
typedef struct { size_t x, y, z, lod; int type; const void *host; uint64_t device; void *array, *reserved; size_t pitch, height; } Side;
typedef struct { Side source, target; size_t width, height, depth; } Copy3D;

int cuStreamGetCaptureInfo_v2(void *s, int *status, uint64_t *id, void **graph, void ***nodes, size_t *count) {
  static void *last;
  if (device_of(s) < 0 || !capturing || !captured.count) return INVALID;
  last = (void *)(intptr_t)captured.count;
  *status = 1, *id = 7, *graph = &captured, *nodes = &last, *count = 1;
  return OK;
}
static Call *node_of(void *exec, void *node) {
  Graph *g = exec;
  intptr_t n = (intptr_t)node;
  return g->tag == EXEC_TAG && n >= 1 && n <= g->count && !capturing ? &g->calls[n - 1] : 0;
}
int cuGraphExecKernelNodeSetParams_v2(void *exec, void *node, const KernelNode *wanted) {
  Call *c = node_of(exec, node);
  unsigned geometry[6] = {wanted->gx, wanted->gy, wanted->gz, wanted->bx, wanted->by, wanted->bz};
  if (!c || c->kind != 1 || wanted->function != &functions[c->kernel] || wanted->extra || wanted->kernel || wanted->context ||
      memcmp(geometry, c->grid, sizeof c->grid) || memcmp(geometry + 3, c->block, sizeof c->block)) return INVALID;
  for (int i = 0; i < 3; i++) memcpy(&c->params[i], wanted->params[i], 8);
  return OK;
}
int cuGraphExecMemcpyNodeSetParams(void *exec, void *node, const Copy3D *wanted, void *context) {
  Call *c = node_of(exec, node);
  if (!c || c->kind || wanted->target.type != 2 || wanted->height != 1 || wanted->depth != 1 || wanted->width != c->size) return INVALID;
  c->from = wanted->source.type == 1 ? wanted->source.host : (void *)wanted->source.device;
  c->to = (void *)wanted->target.device;
  return OK;
}
