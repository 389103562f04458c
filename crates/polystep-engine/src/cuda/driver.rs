//! The driver calls that we use, each checked: memory, streams, events, kernels, graphs.
//!
//! Handles are freed when they are dropped. All of them belong to the one primary context that [`Device`] keeps current. A
//! value may move to another thread, because each entry of the executor makes the context current. Two threads must never share it.

#![allow(unsafe_code)] // the driver is a C library

use std::ffi::{CString, c_void};

use cudarc::driver::{result, sys};

use super::library::{self, Info, Library};
use crate::{EngineError, Result};

/// Turns a driver error into ours.
pub(super) fn check<T>(what: &str, outcome: Result<T, result::DriverError>) -> Result<T> {
    outcome.map_err(|error| EngineError::Device { what: what.into(), message: format!("{error:?}") })
}

/// Frees a handle when it is dropped.
macro_rules! freed {
    ($($name:ident.$handle:ident by $free:path;)*) => {
        $(impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle was made for this value and is freed here alone.
                let _ = unsafe { $free(self.$handle) };
            }
        })*
    };
}

freed! {
    DeviceMemory.at by result::free_sync;
    Stream.raw by result::stream::destroy;
    Event.raw by result::event::destroy;
    Graph.exec by result::graph::exec_destroy;
    Module.raw by result::module::unload;
}

/// The device and its context.
pub(super) struct Device {
    raw: sys::CUdevice,
    context: sys::CUcontext,
    pub(super) info: Info,
    /// The most shared memory that a block may use.
    pub(super) shared_limit: usize,
    /// Whether a launch may overlap the end of the launch before it, in a graph too (Hopper, CUDA 12.4).
    pub(super) overlaps: bool,
}

impl Device {
    /// How many devices this process may see: `CUDA_VISIBLE_DEVICES` hides the others.
    pub(super) fn count() -> Result<u32> {
        library::driver()?;
        let no_device = |error: result::DriverError| EngineError::NoDevice(format!("{error:?}"));
        result::init().map_err(no_device)?;
        match result::device::get_count().map_err(no_device)? {
            0 => Err(EngineError::NoDevice("the driver lists none".into())),
            count => Ok(count as u32),
        }
    }

    /// Opens the libraries, then a device, numbered from 0 among those that this process may see.
    pub(super) fn open(number: u32) -> Result<Self> {
        let libraries: Vec<Library> = vec![library::driver()?, library::nvrtc()?, library::cublaslt()?];
        let count = Device::count()?;
        if number >= count {
            return Err(EngineError::NoDevice(format!("there is no cuda:{number}, only {count} from cuda:0")));
        }
        let raw = check("cuDeviceGet", result::device::get(number as i32))?;
        let attribute = |which| {
            // SAFETY: `raw` is a device of this driver.
            let value = unsafe { result::device::get_attribute(raw, which) };
            check("cuDeviceGetAttribute", value).map(|v| v as usize)
        };
        use sys::CUdevice_attribute_enum as A;
        let mut version = 0;
        // SAFETY: a valid out-pointer.
        unsafe { check("cuDriverGetVersion", sys::cuDriverGetVersion(&mut version).result())? };
        let info = Info {
            device: check("cuDeviceGetName", result::device::get_name(raw))?,
            capability: (
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
                attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
            ),
            processors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            // SAFETY: `raw` is a device of this driver.
            memory_mib: unsafe { check("cuDeviceTotalMem", result::device::total_mem(raw))? } >> 20,
            driver: format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
            libraries,
        };
        if info.capability.0 < 8 {
            return Err(EngineError::NoDevice(format!(
                "{} has compute capability {}.{}; bf16 needs 8.0",
                info.device, info.capability.0, info.capability.1
            )));
        }
        let shared_limit = attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        // SAFETY: `raw` is a device of this driver; released in drop.
        let context = check("cuDevicePrimaryCtxRetain", unsafe { result::primary_ctx::retain(raw) })?;
        let overlaps = info.capability.0 >= 9 && version >= 12_040;
        let device = Device { raw, context, info, shared_limit, overlaps };
        device.enter()?;
        Ok(device)
    }

    /// Makes the context current on this thread.
    pub(super) fn enter(&self) -> Result {
        // SAFETY: the context lives as long as self.
        check("cuCtxSetCurrent", unsafe { result::ctx::set_current(self.context) })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: retained once in `open`; everything made in it was dropped before (field order of the executor).
        let _ = unsafe { result::primary_ctx::release(self.raw) };
    }
}

/// Waits for the whole context. Memsets, and "synchronous" copies from pageable memory, return before they are done. They run on
/// the default stream, for which our streams do not wait.
fn synchronize() -> Result {
    check("cuCtxSynchronize", result::ctx::synchronize())
}

/// Device memory. New memory is zeroed.
pub(super) struct DeviceMemory {
    pub(super) at: u64,
    pub(super) bytes: usize,
}

impl DeviceMemory {
    pub(super) fn new(bytes: usize) -> Result<Self> {
        let bytes = bytes.max(256).next_multiple_of(256);
        // SAFETY: a context is current; the memory is freed once, in drop.
        unsafe {
            match result::malloc_sync(bytes) {
                Ok(at) => {
                    let memory = DeviceMemory { at, bytes };
                    check("cuMemset", result::memset_d8_sync(at, 0, bytes))?;
                    synchronize()?;
                    Ok(memory)
                }
                Err(error) if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                    let free = result::mem_get_info().map_or(0, |(free, _)| free);
                    Err(EngineError::OutOfMemory { wanted_mib: bytes >> 20, free_mib: free >> 20 })
                }
                Err(error) => check("cuMemAlloc", Err(error)),
            }
        }
    }

    /// A copy of host values.
    pub(super) fn of<T: bytemuck::Pod>(values: &[T]) -> Result<Self> {
        let memory = DeviceMemory::new(std::mem::size_of_val(values))?;
        memory.put(0, values)?;
        Ok(memory)
    }

    /// Panics if the range does not lie inside.
    fn holds(&self, offset: usize, bytes: usize) {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "bytes {offset} to {end:?} of {} on the device", self.bytes);
    }

    /// Writes from a byte offset on, and waits until it is done.
    pub(super) fn put<T: bytemuck::Pod>(&self, offset: usize, values: &[T]) -> Result {
        self.holds(offset, std::mem::size_of_val(values));
        // SAFETY: the range lies inside this allocation, as was just checked.
        check("cuMemcpyHtoD", unsafe { result::memcpy_htod_sync(self.at + offset as u64, values) })?;
        synchronize()
    }

    /// Reads from a byte offset on, and waits until it is done.
    pub(super) fn get<T: bytemuck::Pod>(&self, offset: usize, len: usize) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); len];
        self.holds(offset, std::mem::size_of_val(&values[..]));
        // SAFETY: the range lies inside this allocation, as was just checked.
        check("cuMemcpyDtoH", unsafe { result::memcpy_dtoh_sync(&mut values, self.at + offset as u64) })?;
        Ok(values)
    }

    /// Writes zeros everywhere, and waits until it is done.
    pub(super) fn clear(&self) -> Result {
        // SAFETY: the whole of this allocation.
        check("cuMemset", unsafe { result::memset_d8_sync(self.at, 0, self.bytes) })?;
        synchronize()
    }
}

/// Page-locked host memory, in 32-bit words.
pub(super) struct Pinned {
    at: *mut u32,
    words: usize,
}

impl Pinned {
    pub(super) fn new(words: usize) -> Result<Self> {
        // SAFETY: freed once, in drop; zeroed before it is ever seen as a slice.
        unsafe {
            let at = check("cuMemHostAlloc", result::malloc_host(words * 4, 0))?.cast::<u32>();
            std::ptr::write_bytes(at, 0, words);
            Ok(Pinned { at, words })
        }
    }

    pub(super) fn words(&mut self) -> &mut [u32] {
        // SAFETY: `words` initialised words, borrowed mutably through self. A copy to the device that may still read
        // them has been waited for by its event before the caller writes.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.words) }
    }

    /// Starts copying the first words to the device.
    pub(super) fn send(&self, to: &DeviceMemory, words: usize, stream: &Stream) -> Result {
        assert!(words <= self.words, "{words} words of {}", self.words);
        to.holds(0, words * 4);
        // SAFETY: both sides are long enough; the source outlives the copy (the ring waits for its event).
        unsafe {
            let from = std::slice::from_raw_parts(self.at, words);
            check("cuMemcpyHtoDAsync", result::memcpy_htod_async(to.at, from, stream.raw))
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, freed here alone.
        let _ = unsafe { result::free_host(self.at.cast::<c_void>()) };
    }
}

/// A stream.
pub(super) struct Stream {
    pub(super) raw: sys::CUstream,
}

impl Stream {
    pub(super) fn new(priority: i32) -> Result<Self> {
        let raw = check(
            "cuStreamCreate",
            result::stream::create_with_priority(result::stream::StreamKind::NonBlocking, priority),
        )?;
        Ok(Stream { raw })
    }

    pub(super) fn wait(&self) -> Result {
        // SAFETY: a live stream.
        check("cuStreamSynchronize", unsafe { result::stream::synchronize(self.raw) })
    }

    /// Later work of this stream starts after the event.
    pub(super) fn after(&self, event: &Event) -> Result {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: a live stream and a live event.
        check("cuStreamWaitEvent", unsafe { result::stream::wait_event(self.raw, event.raw, flags) })
    }

    pub(super) fn begin_capture(&self) -> Result {
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: a live stream.
        check("cuStreamBeginCapture", unsafe { result::stream::begin_capture(self.raw, mode) })
    }

    pub(super) fn end_capture(&self) -> Result<Graph> {
        // SAFETY: a stream in capture; the graph is destroyed once it is instantiated.
        unsafe {
            let graph = check("cuStreamEndCapture", result::stream::end_capture(self.raw))?;
            let flags = sys::CUgraphInstantiate_flags(0);
            let exec = result::graph::instantiate(graph, flags);
            let _ = result::graph::destroy(graph);
            Ok(Graph { exec: check("cuGraphInstantiate", exec)? })
        }
    }
}

/// An event.
pub(super) struct Event {
    raw: sys::CUevent,
}

impl Event {
    pub(super) fn new(timing: bool) -> Result<Self> {
        let flags =
            if timing { sys::CUevent_flags::CU_EVENT_DEFAULT } else { sys::CUevent_flags::CU_EVENT_DISABLE_TIMING };
        Ok(Event { raw: check("cuEventCreate", result::event::create(flags))? })
    }

    pub(super) fn record(&self, stream: &Stream) -> Result {
        // SAFETY: a live event and a live stream.
        check("cuEventRecord", unsafe { result::event::record(self.raw, stream.raw) })
    }

    pub(super) fn wait(&self) -> Result {
        // SAFETY: a live event.
        check("cuEventSynchronize", unsafe { result::event::synchronize(self.raw) })
    }

    /// Microseconds from self to a later event; both recorded with timing and done.
    pub(super) fn microseconds(&self, end: &Event) -> Result<f64> {
        // SAFETY: two live events.
        let ms = check("cuEventElapsedTime", unsafe { result::event::elapsed(self.raw, end.raw) })?;
        Ok(f64::from(ms) * 1e3)
    }
}

/// A captured graph, ready to run.
pub(super) struct Graph {
    exec: sys::CUgraphExec,
}

impl Graph {
    pub(super) fn launch(&self, stream: &Stream) -> Result {
        // SAFETY: a live graph and a live stream; the buffers its nodes name live as long as the executor.
        check("cuGraphLaunch", unsafe { result::graph::launch(self.exec, stream.raw) })
    }

    /// Moves the graph to the device, so that the first launch takes no longer than the others.
    pub(super) fn upload(&self, stream: &Stream) -> Result {
        // SAFETY: as in `launch`.
        check("cuGraphUpload", unsafe { result::graph::upload(self.exec, stream.raw) })
    }
}

/// A loaded cubin.
pub(super) struct Module {
    raw: sys::CUmodule,
}

impl Module {
    pub(super) fn load(cubin: &[u8]) -> Result<Self> {
        // SAFETY: the image is a whole cubin in memory; the driver copies it.
        let raw = check("cuModuleLoadData", unsafe { result::module::load_data(cubin.as_ptr().cast()) })?;
        Ok(Module { raw })
    }

    /// A kernel that may use up to `shared` bytes of dynamic shared memory.
    pub(super) fn kernel(&self, name: &str, shared: usize) -> Result<Kernel> {
        let symbol = CString::new(name).unwrap_or_default();
        // SAFETY: a live module.
        let raw = check(name, unsafe { result::module::get_function(self.raw, symbol) })?;
        if shared > 48 * 1024 {
            let which = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a live function.
            check(name, unsafe { result::function::set_function_attribute(raw, which, shared as i32) })?;
        }
        Ok(Kernel { raw })
    }
}

/// A kernel of a loaded module. The module outlives it, since the executor owns both.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    raw: sys::CUfunction,
}

/// Arguments of a kernel, in order. The types must be the kernel's own.
#[derive(Clone, Default)]
pub(super) struct Args(Vec<[u64; 4]>);

impl Args {
    pub(super) fn ptr(self, at: u64) -> Self {
        self.raw([at, 0, 0, 0])
    }

    pub(super) fn ptrs<const N: usize>(self, at: [u64; N]) -> Self {
        at.into_iter().fold(self, Self::ptr)
    }

    pub(super) fn int(self, value: impl TryInto<i32>) -> Self {
        self.raw([u64::from(value.try_into().unwrap_or(i32::MAX) as u32), 0, 0, 0])
    }

    pub(super) fn ints<const N: usize>(self, values: [impl TryInto<i32>; N]) -> Self {
        values.into_iter().fold(self, Self::int)
    }

    pub(super) fn float(self, value: f32) -> Self {
        self.raw([u64::from(value.to_bits()), 0, 0, 0])
    }

    /// A struct of up to 32 bytes, given as its words.
    pub(super) fn raw(mut self, words: [u64; 4]) -> Self {
        self.0.push(words);
        self
    }
}

/// Blocks, threads of a block and dynamic shared memory of a launch.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) blocks: (usize, usize, usize),
    pub(super) threads: (usize, usize),
    pub(super) shared: usize,
}

impl Grid {
    pub(super) fn flat(blocks: usize, threads: usize) -> Self {
        Grid { blocks: (blocks.max(1), 1, 1), threads: (threads, 1), shared: 0 }
    }
}

impl Kernel {
    /// `early`: the launch may overlap the end of the launch before it on the stream, for which the kernel itself waits
    /// (`begin` in common.cuh).
    pub(super) fn launch(&self, grid: Grid, args: &Args, early: bool, stream: &Stream) -> Result {
        let mut args = args.clone();
        let mut pointers: Vec<*mut c_void> = args.0.iter_mut().map(|a| a.as_mut_ptr().cast()).collect();
        let mut attribute = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID_enum::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue_union { programmaticStreamSerializationAllowed: i32::from(early) },
        };
        let (g, b) = (grid.blocks, grid.threads);
        let config = sys::CUlaunchConfig {
            gridDimX: g.0 as u32,
            gridDimY: g.1 as u32,
            gridDimZ: g.2 as u32,
            blockDimX: b.0 as u32,
            blockDimY: b.1 as u32,
            blockDimZ: 1,
            sharedMemBytes: grid.shared as u32,
            hStream: stream.raw,
            attrs: &raw mut attribute,
            numAttrs: u32::from(early),
        };
        // SAFETY: the arguments have the kernel's types (the callers stand beside the kernels' signatures and every op is
        // tested against the CPU); the buffers they name live as long as the executor; config and attribute live to the end
        // of the call.
        check("cuLaunchKernelEx", unsafe {
            sys::cuLaunchKernelEx(&raw const config, self.raw, pointers.as_mut_ptr(), std::ptr::null_mut()).result()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_device_memory_are_checked() {
        let memory = std::mem::ManuallyDrop::new(DeviceMemory { at: 0, bytes: 256 });
        memory.holds(0, 256);
        memory.holds(256, 0);
        for (offset, bytes) in [(0, 257), (256, 1), (usize::MAX, 2)] {
            assert!(std::panic::catch_unwind(|| memory.holds(offset, bytes)).is_err());
        }
    }
}
