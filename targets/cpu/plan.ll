; Plans the arena of a model with symbolic dims for the sizes of a run: what xcc.runtime.arena does, in a hundredth of
; the time. The tables are made from the program when the model is loaded (xcc/runtime/native_plan.py: _Record): this
; code is the same for every model.
;
; Values are computed in a list of steps {operation, left, right}, each over values that come before it. Whatever does
; not fit 64 bits, or divides by less than 1, is left to Python, which says what is wrong.
;
; Artifacts hold this code, and any later runtime makes its tables: another %Record needs another name of the function.

%Record = type {
  i64, ptr,             ; 0: symbols, and where among the values each goes
  i64, ptr, ptr,        ; 2: steps, the values: those of steps come first
  i64, ptr, ptr,        ; 5: dims of outputs: where among the values each is; results
  i64, ptr, ptr,        ; 8: buffers: where among the values the bytes of each are; bytes of whole cache lines
  ptr, ptr, ptr,        ; 11: the buffers by size; where each begins (result) and ends
  ptr, ptr,             ; 14: of each buffer, where those alive with it begin in a list (and one more); the list
  ptr, ptr, ptr         ; 16: which of the program's buffers they are; the arena; the addresses of all (results)
}
%Step = type { i32, i32, i32 }

; Bytes of the arena for the values of symbols that `given` has, or -1. Writes the results.
define i64 @xcc_plan_arena(ptr %record, ptr %given) {
entry:
  %r = load %Record, ptr %record
  %symbols = extractvalue %Record %r, 0
  %symbol_places = extractvalue %Record %r, 1
  %values = extractvalue %Record %r, 4
  call void @scatter(i64 %symbols, ptr %symbol_places, ptr %given, ptr %values)
  %steps = extractvalue %Record %r, 2
  %table = extractvalue %Record %r, 3
  %known = call i1 @compute(i64 %steps, ptr %table, ptr %values)
  br i1 %known, label %measure, label %fail
measure:
  %dims = extractvalue %Record %r, 5
  %dim_places = extractvalue %Record %r, 6
  %dim_results = extractvalue %Record %r, 7
  call void @gather(i64 %dims, ptr %dim_places, ptr %values, ptr %dim_results)
  %count = extractvalue %Record %r, 8
  %size_places = extractvalue %Record %r, 9
  %sizes = extractvalue %Record %r, 10
  call void @gather(i64 %count, ptr %size_places, ptr %values, ptr %sizes)
  %order = extractvalue %Record %r, 11
  %begins = extractvalue %Record %r, 12
  %ends = extractvalue %Record %r, 13
  %fit = call i1 @align_sizes(i64 %count, ptr %sizes, ptr %begins, ptr %ends)
  br i1 %fit, label %place, label %fail
place:
  call void @sort(i64 %count, ptr %sizes, ptr %order)
  %firsts = extractvalue %Record %r, 14
  %conflicts = extractvalue %Record %r, 15
  %size = call i64 @place(i64 %count, ptr %sizes, ptr %order, ptr %begins, ptr %ends, ptr %firsts, ptr %conflicts)
  %buffers = extractvalue %Record %r, 16
  %arena = extractvalue %Record %r, 17
  %addresses = extractvalue %Record %r, 18
  call void @point(i64 %count, ptr %buffers, ptr %begins, ptr %arena, ptr %addresses)
  ret i64 %size
fail:
  ret i64 -1
}

; to[places[n]] = from[n]
define internal void @scatter(i64 %count, ptr %places, ptr %from, ptr %to) {
entry:
  br label %check
check:
  %n = phi i64 [ 0, %entry ], [ %n1, %move ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %move, label %out
move:
  %place_p = getelementptr i32, ptr %places, i64 %n
  %place = load i32, ptr %place_p
  %from_p = getelementptr i64, ptr %from, i64 %n
  %value = load i64, ptr %from_p
  %to_p = getelementptr i64, ptr %to, i32 %place
  store i64 %value, ptr %to_p
  %n1 = add i64 %n, 1
  br label %check
out:
  ret void
}

; to[n] = from[places[n]]
define internal void @gather(i64 %count, ptr %places, ptr %from, ptr %to) {
entry:
  br label %check
check:
  %n = phi i64 [ 0, %entry ], [ %n1, %move ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %move, label %out
move:
  %place_p = getelementptr i32, ptr %places, i64 %n
  %place = load i32, ptr %place_p
  %from_p = getelementptr i64, ptr %from, i32 %place
  %value = load i64, ptr %from_p
  %to_p = getelementptr i64, ptr %to, i64 %n
  store i64 %value, ptr %to_p
  %n1 = add i64 %n, 1
  br label %check
out:
  ret void
}

; addresses[buffers[n]] = arena + begins[n]
define internal void @point(i64 %count, ptr %buffers, ptr %begins, ptr %arena, ptr %addresses) {
entry:
  br label %check
check:
  %n = phi i64 [ 0, %entry ], [ %n1, %move ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %move, label %out
move:
  %buffer_p = getelementptr i32, ptr %buffers, i64 %n
  %buffer = load i32, ptr %buffer_p
  %begin_p = getelementptr i64, ptr %begins, i64 %n
  %begin = load i64, ptr %begin_p
  %address = getelementptr i8, ptr %arena, i64 %begin
  %address_p = getelementptr ptr, ptr %addresses, i32 %buffer
  store ptr %address, ptr %address_p
  %n1 = add i64 %n, 1
  br label %check
out:
  ret void
}

; The value of each step; 0 where one cannot be computed here.
define internal i1 @compute(i64 %count, ptr %table, ptr %values) {
entry:
  br label %check
check:
  %n = phi i64 [ 0, %entry ], [ %n1, %next ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %step, label %done
step:
  %step_p = getelementptr %Step, ptr %table, i64 %n
  %s = load %Step, ptr %step_p
  %operation = extractvalue %Step %s, 0
  %left = extractvalue %Step %s, 1
  %right = extractvalue %Step %s, 2
  %a_p = getelementptr i64, ptr %values, i32 %left
  %a = load i64, ptr %a_p
  %b_p = getelementptr i64, ptr %values, i32 %right
  %b = load i64, ptr %b_p
  switch i32 %operation, label %fail [ i32 0, label %add
                                       i32 1, label %mul
                                       i32 2, label %floordiv
                                       i32 3, label %mod
                                       i32 4, label %max
                                       i32 5, label %min ]
add:
  %added = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %a, i64 %b)
  br label %wide
mul:
  %multiplied = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
  br label %wide
wide:
  %both = phi { i64, i1 } [ %added, %add ], [ %multiplied, %mul ]
  %short = extractvalue { i64, i1 } %both, 0
  %overflow = extractvalue { i64, i1 } %both, 1
  br i1 %overflow, label %fail, label %next
floordiv:
  %can_divide = icmp sgt i64 %b, 0
  br i1 %can_divide, label %divide, label %fail
divide:
  %quotient0 = sdiv i64 %a, %b
  %rest0 = srem i64 %a, %b
  %below0 = ashr i64 %rest0, 63                         ; -1 where the rest is negative
  %quotient = add i64 %quotient0, %below0
  br label %next
mod:
  %can_mod = icmp sgt i64 %b, 0
  br i1 %can_mod, label %remain, label %fail
remain:
  %rest1 = srem i64 %a, %b
  %below1 = ashr i64 %rest1, 63
  %up = and i64 %below1, %b
  %rest = add i64 %rest1, %up
  br label %next
max:
  %larger = call i64 @llvm.smax.i64(i64 %a, i64 %b)
  br label %next
min:
  %smaller = call i64 @llvm.smin.i64(i64 %a, i64 %b)
  br label %next
next:
  %v = phi i64 [ %short, %wide ], [ %quotient, %divide ], [ %rest, %remain ], [ %larger, %max ], [ %smaller, %min ]
  %v_p = getelementptr i64, ptr %values, i64 %n
  store i64 %v, ptr %v_p
  %n1 = add i64 %n, 1
  br label %check
done:
  ret i1 1
fail:
  ret i1 0
}

; Rounds sizes up to cache lines, at least one, and leaves no buffer a place; 0 where one is larger than any memory.
define internal i1 @align_sizes(i64 %count, ptr %sizes, ptr %begins, ptr %ends) {
entry:
  br label %check
check:
  %n = phi i64 [ 0, %entry ], [ %n1, %size ]
  %large = phi i64 [ 0, %entry ], [ %larger, %size ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %size, label %out
size:
  %p = getelementptr i64, ptr %sizes, i64 %n
  %bytes = load i64, ptr %p
  %some = call i64 @llvm.smax.i64(i64 %bytes, i64 1)
  %larger = call i64 @llvm.smax.i64(i64 %some, i64 %large)
  %over = add i64 %some, 63
  %aligned = and i64 %over, -64
  store i64 %aligned, ptr %p
  %begin_p = getelementptr i64, ptr %begins, i64 %n
  store i64 0, ptr %begin_p
  %end_p = getelementptr i64, ptr %ends, i64 %n
  store i64 0, ptr %end_p
  %n1 = add i64 %n, 1
  br label %check
out:
  %fits = icmp ult i64 %large, 281474976710656          ; 2^48: the sum of all does not overflow
  ret i1 %fits
}

; Sorts `order`: the largest first, of the same size the first. It comes sorted for other sizes: few move.
define internal void @sort(i64 %count, ptr %sizes, ptr %order) {
entry:
  br label %check
check:
  %n = phi i64 [ 0, %entry ], [ %n1, %put ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %take, label %out
take:
  %taken_p = getelementptr i32, ptr %order, i64 %n
  %taken = load i32, ptr %taken_p
  %size_p = getelementptr i64, ptr %sizes, i32 %taken
  %size = load i64, ptr %size_p
  br label %seek
seek:
  %at = phi i64 [ %n, %take ], [ %before, %shift ]
  %first = icmp eq i64 %at, 0
  br i1 %first, label %put, label %compare
compare:
  %before = sub i64 %at, 1
  %other_p = getelementptr i32, ptr %order, i64 %before
  %other = load i32, ptr %other_p
  %other_size_p = getelementptr i64, ptr %sizes, i32 %other
  %other_size = load i64, ptr %other_size_p
  %larger = icmp sgt i64 %other_size, %size
  %same = icmp eq i64 %other_size, %size
  %earlier = icmp slt i32 %other, %taken
  %tie = and i1 %same, %earlier
  %stays = or i1 %larger, %tie
  br i1 %stays, label %put, label %shift
shift:
  %to_p = getelementptr i32, ptr %order, i64 %at
  store i32 %other, ptr %to_p
  br label %seek
put:
  %put_p = getelementptr i32, ptr %order, i64 %at
  store i32 %taken, ptr %put_p
  %n1 = add i64 %n, 1
  br label %check
out:
  ret void
}

; Gives each buffer in `order` the lowest gap between those alive with it that have a place; returns where the last ends.
define internal i64 @place(i64 %count, ptr %sizes, ptr %order, ptr %begins, ptr %ends, ptr %firsts, ptr %conflicts) {
entry:
  br label %check
check:
  %n = phi i64 [ 0, %entry ], [ %n1, %put ]
  %used = phi i64 [ 0, %entry ], [ %used1, %put ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %take, label %out
take:
  %taken_p = getelementptr i32, ptr %order, i64 %n
  %taken = load i32, ptr %taken_p
  %size_p = getelementptr i64, ptr %sizes, i32 %taken
  %size = load i64, ptr %size_p
  %first_p = getelementptr i32, ptr %firsts, i32 %taken
  %first = load i32, ptr %first_p
  %stop_p = getelementptr i32, ptr %first_p, i64 1
  %stop = load i32, ptr %stop_p
  br label %pass
pass:                                                   ; through all that are alive with it, until none is in the way
  %begin0 = phi i64 [ 0, %take ], [ %begin, %passed ]
  br label %look
look:
  %at = phi i32 [ %first, %pass ], [ %at1, %looked ]
  %begin = phi i64 [ %begin0, %pass ], [ %begin1, %looked ]
  %left = icmp slt i32 %at, %stop
  br i1 %left, label %other, label %passed
other:
  %other_p = getelementptr i32, ptr %conflicts, i32 %at
  %j = load i32, ptr %other_p
  %its_begin_p = getelementptr i64, ptr %begins, i32 %j
  %its_begin = load i64, ptr %its_begin_p
  %its_end_p = getelementptr i64, ptr %ends, i32 %j
  %its_end = load i64, ptr %its_end_p
  %end = add i64 %begin, %size
  %under = icmp slt i64 %its_begin, %end
  %over = icmp sgt i64 %its_end, %begin
  %hit = and i1 %under, %over
  %begin1 = select i1 %hit, i64 %its_end, i64 %begin
  br label %looked
looked:
  %at1 = add i32 %at, 1
  br label %look
passed:
  %moved = icmp ne i64 %begin, %begin0
  br i1 %moved, label %pass, label %put
put:
  %begin_p = getelementptr i64, ptr %begins, i32 %taken
  store i64 %begin, ptr %begin_p
  %its_new_end = add i64 %begin, %size
  %end_p = getelementptr i64, ptr %ends, i32 %taken
  store i64 %its_new_end, ptr %end_p
  %used1 = call i64 @llvm.smax.i64(i64 %used, i64 %its_new_end)
  %n1 = add i64 %n, 1
  br label %check
out:
  ret i64 %used
}

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
