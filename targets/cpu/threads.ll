; The thread pool of a compiled model. One region runs at a time; a caller that finds it taken works alone.
;
; Each thread has a share of the range, the same one for the same range in every region, so that what one kernel wrote
; is in the cache of the thread that reads it in the next. A thread takes an eighth of what is left of its share at a
; time, down to a 32nd of a share, then helps with others': nobody waits long for the last piece.
;
; A worker that sees a new generation enters (its word of @inside is 1), takes pieces only while the region is open, and
; leaves. The caller works too, closes the region when the pieces are out, and waits until no worker is inside: never
; for one that is still asleep. Each worker has a cache line for its word: they come and go without waiting for each
; other. Workers spin for a while before they sleep on the condition variable. A generation that begins with a @limit
; below 0 is the last one.
;
; A scheduler may leave a worker on the caller's processor, where it has its time only while the caller waits for it, for
; as long as the two run: a worker that finds itself there leaves it, where there are processors for all, and keeps to
; the others until the caller comes to it.

@fn = internal global ptr null
@slots = internal global ptr null
@total = internal global i64 0
@least = internal global i64 1           ; of a piece
@threads = internal global i64 1
@next = internal global [256 x [8 x i64]] zeroinitializer, align 64     ; of each share; a line each
@generation = internal global i32 0, align 64
@open = internal global i32 0, align 64
@inside = internal global [256 x [16 x i32]] zeroinitializer, align 64   ; of each worker; a line each
@busy = internal global i32 0, align 64
@sleepers = internal global i32 0, align 64
@place = internal global i32 -1          ; the processor that the region began on
@limit = internal global i32 0           ; workers that take part
@spawned = internal global i32 0
@handles = internal global [256 x ptr] zeroinitializer      ; pthread_t of each worker
@stack = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 64
@condition = internal global [128 x i8] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_destroy(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_destroy(ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @memcmp(ptr, ptr, i64)

; Calls f(slots, begin, end) for pieces that cover [0, total), on all threads.
define void @xcc_parallel(ptr %f, ptr %args, i64 %n) {
  %limit = load i32, ptr @limit
  %alone = icmp eq i32 %limit, 0
  %few = icmp sle i64 %n, 1
  %serial = or i1 %alone, %few
  br i1 %serial, label %run, label %claim
claim:
  %taken = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %start, label %run
run:
  call void %f(ptr %args, i64 0, i64 %n)
  ret void
start:
  %threads32 = add i32 %limit, 1
  %threads = zext i32 %threads32 to i64
  %parts = shl i64 %threads, 5
  %rounded = add i64 %n, %parts
  %minus = sub i64 %rounded, 1
  %size = udiv i64 %minus, %parts
  store ptr %f, ptr @fn
  store ptr %args, ptr @slots
  store i64 %n, ptr @total
  store i64 %size, ptr @least
  store i64 %threads, ptr @threads
  br label %share
share:
  %t = phi i64 [ 0, %start ], [ %t1, %share ]
  %first = call i64 @share_begin(i64 %t, i64 %n, i64 %threads)
  %counter = getelementptr [8 x i64], ptr @next, i64 %t
  store atomic i64 %first, ptr %counter monotonic, align 8
  %t1 = add i64 %t, 1
  %shared = icmp eq i64 %t1, %threads
  br i1 %shared, label %begin, label %share
begin:
  %place = call i32 @sched_getcpu()
  store atomic i32 %place, ptr @place monotonic, align 4
  store atomic i32 1, ptr @open seq_cst, align 4
  %old = atomicrmw add ptr @generation, i32 1 seq_cst
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %wake = icmp ne i32 %asleep, 0
  br i1 %wake, label %signal, label %work
signal:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @condition)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
work:
  call void @work(i64 0)
  store atomic i32 0, ptr @open seq_cst, align 4
  %spawned = load i32, ptr @spawned
  %workers = zext i32 %spawned to i64
  br label %wait
wait:
  %w = phi i64 [ 0, %work ], [ %w, %again ], [ %w1, %gone ]
  %tries = phi i32 [ 0, %work ], [ %tries1, %again ], [ 0, %gone ]
  %word = getelementptr [16 x i32], ptr @inside, i64 %w
  %there = load atomic i32, ptr %word seq_cst, align 4
  %left = icmp eq i32 %there, 0
  br i1 %left, label %gone, label %again
again:
  %tries1 = add i32 %tries, 1
  call void @pause(i32 %tries1)
  br label %wait
gone:
  %w1 = add i64 %w, 1
  %all = icmp eq i64 %w1, %workers
  br i1 %all, label %finish, label %wait
finish:
  store atomic i32 0, ptr @busy seq_cst, align 4
  ret void
}

; Where share t of [0, n) begins.
define internal i64 @share_begin(i64 %t, i64 %n, i64 %threads) alwaysinline {
  %product = mul i64 %t, %n
  %begin = udiv i64 %product, %threads
  ret i64 %begin
}

; Takes pieces until there are none: of the share `me`, then of the others.
define internal void @work(i64 %me) {
  %f = load ptr, ptr @fn
  %args = load ptr, ptr @slots
  %n = load i64, ptr @total
  %least = load i64, ptr @least
  %threads = load i64, ptr @threads
  br label %share
share:
  %helped = phi i64 [ 0, %0 ], [ %helped1, %done ]
  %sum = add i64 %me, %helped
  %over = sub i64 %sum, %threads
  %past = icmp uge i64 %sum, %threads
  %t = select i1 %past, i64 %over, i64 %sum
  %t1 = add i64 %t, 1
  %stop = call i64 @share_begin(i64 %t1, i64 %n, i64 %threads)
  %counter = getelementptr [8 x i64], ptr @next, i64 %t
  br label %look
look:
  %now = load atomic i64, ptr %counter seq_cst, align 8
  %any = icmp slt i64 %now, %stop
  br i1 %any, label %take, label %done
take:
  %left = sub i64 %stop, %now
  %part = lshr i64 %left, 3
  %many = call i64 @llvm.smax.i64(i64 %part, i64 %least)
  %begin = atomicrmw add ptr %counter, i64 %many seq_cst
  %some = icmp slt i64 %begin, %stop
  br i1 %some, label %run, label %done
run:
  %far = add i64 %begin, %many
  %end = call i64 @llvm.smin.i64(i64 %far, i64 %stop)
  call void %f(ptr %args, i64 %begin, i64 %end)
  br label %look
done:
  %helped1 = add i64 %helped, 1
  %all = icmp eq i64 %helped1, %threads
  br i1 %all, label %out, label %share
out:
  ret void
}

; Makes the pages of `bytes` of stack: the caller's now, a worker's when it starts.
define void @xcc_make_stack(i64 %bytes) {
  store i64 %bytes, ptr @stack
  call void @make_stack()
  ret void
}

define internal void @make_stack() noinline {
  %bytes = load i64, ptr @stack
  %memory = alloca i8, i64 %bytes
  br label %page
page:
  %left = phi i64 [ %bytes, %0 ], [ %below, %write ]
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %write, label %out
write:
  %last = sub i64 %left, 1
  %byte = getelementptr i8, ptr %memory, i64 %last
  store volatile i8 0, ptr %byte
  %below = sub i64 %left, 4096
  br label %page
out:
  ret void
}

; One worker thread; its number decides whether it takes part.
define internal ptr @worker(ptr %arg) {
  %allowed = alloca [16 x i64], align 8
  %own = alloca [16 x i64], align 8
  %cpus = call i32 @processors(ptr %allowed)
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %allowed, i64 128, i1 false)
  call void @make_stack()
  %number64 = ptrtoint ptr %arg to i64
  %number = trunc i64 %number64 to i32
  %word = getelementptr [16 x i32], ptr @inside, i64 %number64
  br label %idle
idle:
  %seen = phi i32 [ 0, %0 ], [ %now, %next ]
  br label %spin
spin:
  %tries = phi i32 [ 0, %idle ], [ %tries1, %relax ]
  %now0 = load atomic i32, ptr @generation seq_cst, align 4
  %new = icmp ne i32 %now0, %seen
  br i1 %new, label %enter, label %relax
relax:
  %tries1 = add i32 %tries, 1
  call void @pause(i32 %tries1)
  %tired = icmp sgt i32 %tries1, 20000
  br i1 %tired, label %sleep, label %spin
sleep:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %s = atomicrmw add ptr @sleepers, i32 1 seq_cst
  br label %check
check:
  %now1 = load atomic i32, ptr @generation seq_cst, align 4
  %same = icmp eq i32 %now1, %seen
  %limit1 = load i32, ptr @limit
  %on = icmp sge i32 %limit1, 0
  %still = and i1 %same, %on
  br i1 %still, label %block, label %awake
block:
  %w = call i32 @pthread_cond_wait(ptr @condition, ptr @mutex)
  br label %check
awake:
  %d = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %enter
enter:
  %now = phi i32 [ %now0, %spin ], [ %now1, %awake ]
  %limit = load i32, ptr @limit
  %wanted = icmp slt i32 %number, %limit
  br i1 %wanted, label %look, label %spare
look:
  %room = icmp slt i32 %limit, %cpus
  br i1 %room, label %compare, label %join
compare:
  %here = call i32 @sched_getcpu()
  %theirs = load atomic i32, ptr @place monotonic, align 4
  %beside = icmp eq i32 %here, %theirs
  %known = icmp ult i32 %here, 1024
  %both = and i1 %beside, %known
  br i1 %both, label %move, label %join
move:
  call void @leave(ptr %allowed, ptr %own, i32 %here)
  br label %join
join:
  store atomic i32 1, ptr %word seq_cst, align 4
  %o = load atomic i32, ptr @open seq_cst, align 4
  %is_open = icmp ne i32 %o, 0
  br i1 %is_open, label %do, label %leave
do:                                      ; the limit may have changed since: the open region says whom it is for
  %share = add i64 %number64, 1
  %threads = load i64, ptr @threads
  %mine = icmp ult i64 %share, %threads
  br i1 %mine, label %take, label %leave
take:
  call void @work(i64 %share)
  br label %leave
leave:
  store atomic i32 0, ptr %word release, align 4
  br label %next
spare:
  %last = icmp slt i32 %limit, 0
  br i1 %last, label %out, label %next
next:
  br label %idle
out:
  ret ptr null
}

; How many processors this thread may run on, 0 where that is not known; which, into the 1024 bits at %set.
define internal i32 @processors(ptr %set) {
  call void @llvm.memset.p0.i64(ptr %set, i8 0, i64 128, i1 false)
  %e = call i32 @sched_getaffinity(i32 0, i64 128, ptr %set)
  %ok = icmp eq i32 %e, 0
  br i1 %ok, label %word, label %unknown
word:
  %n = phi i64 [ 0, %0 ], [ %n1, %word ]
  %sum = phi i64 [ 0, %0 ], [ %sum1, %word ]
  %at = getelementptr i64, ptr %set, i64 %n
  %bits = load i64, ptr %at
  %ones = call i64 @llvm.ctpop.i64(i64 %bits)
  %sum1 = add i64 %sum, %ones
  %n1 = add i64 %n, 1
  %all = icmp eq i64 %n1, 16
  br i1 %all, label %known, label %word
known:
  %count = trunc i64 %sum1 to i32
  ret i32 %count
unknown:
  ret i32 0
}

; Moves this thread to the processors %allowed other than %cpu, to stay on them: those are %mine then. Where it is on
; others than %mine, somebody else has said so, and these are allowed from now on.
define internal void @leave(ptr %allowed, ptr %mine, i32 %cpu) noinline {
  %now = alloca [16 x i64], align 8
  %count = call i32 @processors(ptr %now)
  %differ = call i32 @memcmp(ptr %now, ptr %mine, i64 128)
  %same = icmp eq i32 %differ, 0
  br i1 %same, label %choose, label %told
told:
  call void @llvm.memcpy.p0.p0.i64(ptr %allowed, ptr %now, i64 128, i1 false)
  br label %choose
choose:
  call void @llvm.memcpy.p0.p0.i64(ptr %mine, ptr %allowed, i64 128, i1 false)
  %bit = zext i32 %cpu to i64
  %n = lshr i64 %bit, 6
  %low = and i64 %bit, 63
  %one = shl i64 1, %low
  %rest = xor i64 %one, -1
  %at = getelementptr i64, ptr %mine, i64 %n
  %bits = load i64, ptr %at
  %without = and i64 %bits, %rest
  store i64 %without, ptr %at
  %e = call i32 @sched_setaffinity(i32 0, i64 128, ptr %mine)
  %ok = icmp eq i32 %e, 0
  br i1 %ok, label %out, label %refused
refused:                                 ; there is no other, or it is not for us to say
  call void @llvm.memcpy.p0.p0.i64(ptr %mine, ptr %now, i64 128, i1 false)
  br label %out
out:
  ret void
}

; Waits a moment; gives the processor away now and then.
define internal void @pause(i32 %tries) {
  call void @relax()
  %low = and i32 %tries, 2047
  %often = icmp eq i32 %low, 2047
  br i1 %often, label %yield, label %out
yield:
  %y = call i32 @sched_yield()
  br label %out
out:
  ret void
}

; Sets the number of threads, the caller's included. Not while a region runs. Returns the number in use.
define i32 @xcc_set_threads(i32 %threads) {
  %most = call i32 @llvm.smin.i32(i32 %threads, i32 256)
  %wanted = sub i32 %most, 1
  %have0 = load i32, ptr @spawned
  %first = icmp eq i32 %have0, 0
  br i1 %first, label %init, label %loop
init:
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @condition, ptr null)
  br label %loop
loop:
  %have = load i32, ptr @spawned
  %more = icmp slt i32 %have, %wanted
  br i1 %more, label %spawn, label %done
spawn:
  %id64 = zext i32 %have to i64
  %id = inttoptr i64 %id64 to ptr
  %handle = getelementptr [256 x ptr], ptr @handles, i64 0, i64 %id64
  %e = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr %id)
  %ok = icmp eq i32 %e, 0
  br i1 %ok, label %count, label %done
count:
  %have1 = add i32 %have, 1
  store i32 %have1, ptr @spawned
  br label %loop
done:
  %total = load i32, ptr @spawned
  %low = call i32 @llvm.smin.i32(i32 %wanted, i32 %total)
  %use = call i32 @llvm.smax.i32(i32 %low, i32 0)
  store i32 %use, ptr @limit
  %result = add i32 %use, 1
  ret i32 %result
}

; Ends the workers, and waits until they are gone: no code of the model runs any more, and it may be unloaded. Not while
; a region runs. xcc_set_threads starts others.
define void @xcc_stop() {
  %workers = load i32, ptr @spawned
  %none = icmp eq i32 %workers, 0
  br i1 %none, label %out, label %tell
tell:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  store i32 -1, ptr @limit
  %old = atomicrmw add ptr @generation, i32 1 seq_cst
  %b = call i32 @pthread_cond_broadcast(ptr @condition)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  %count = zext i32 %workers to i64
  br label %join
join:
  %n = phi i64 [ 0, %tell ], [ %n1, %join ]
  %slot = getelementptr [256 x ptr], ptr @handles, i64 0, i64 %n
  %handle = load ptr, ptr %slot
  %j = call i32 @pthread_join(ptr %handle, ptr null)
  %n1 = add i64 %n, 1
  %all = icmp eq i64 %n1, %count
  br i1 %all, label %gone, label %join
gone:
  %c = call i32 @pthread_cond_destroy(ptr @condition)
  %m = call i32 @pthread_mutex_destroy(ptr @mutex)
  store i32 0, ptr @limit
  store i32 0, ptr @spawned
  br label %out
out:
  ret void
}

; In the child of a fork there are no workers.
define void @xcc_after_fork() {
  store i32 0, ptr @limit
  store i32 0, ptr @spawned
  store atomic i32 0, ptr @open seq_cst, align 4       ; another thread's region
  call void @llvm.memset.p0.i64(ptr @inside, i8 0, i64 16384, i1 false)
  store atomic i32 0, ptr @busy seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  ret void
}

; f32 rounded to bf16, to nearest even. LLVM calls it for what it makes of bf16 itself, atomic updates among it, where a
; chip has no instruction for it; no process has it.
define hidden bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %up = add i32 %bits, %half
  %near = lshr i32 %up, 16
  %quiet = or i32 %high, 64
  %nan = fcmp uno float %x, 0.0
  %out = select i1 %nan, i32 %quiet, i32 %near
  %short = trunc i32 %out to i16
  %rounded = bitcast i16 %short to bfloat
  ret bfloat %rounded
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
