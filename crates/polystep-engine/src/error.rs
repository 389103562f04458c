//! What can go wrong on a device, each as one sentence that says what to do.

/// What may fail in the engine.
pub(crate) type Result<T = (), E = EngineError> = std::result::Result<T, E>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// More than the executor was made for.
    #[error("the batch has {got} {what}, more than the {limit} this run was set up for")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        got: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A flat buffer of the wrong length.
    #[error("{what} has {got} numbers where {want} were expected: it belongs to a model of another shape")]
    Shape {
        /// Which buffer.
        what: &'static str,
        /// Its length.
        got: usize,
        /// The length wanted.
        want: usize,
    },
    /// A library that is needed for CUDA is not there.
    #[error("{library} was not found: {help}")]
    MissingLibrary {
        /// Which one.
        library: String,
        /// What to do.
        help: String,
    },
    /// No CUDA device.
    #[error("no CUDA device can be used: {0}")]
    NoDevice(String),
    /// Not enough memory on the device.
    #[error(
        "out of memory on the device ({wanted_mib} MiB asked, {free_mib} MiB free): use a smaller train.batch or model"
    )]
    OutOfMemory {
        /// Asked for.
        wanted_mib: usize,
        /// Left on the device.
        free_mib: usize,
    },
    /// A kernel that does not compile.
    #[error("the CUDA kernels do not compile for this device: {0}")]
    Compile(String),
    /// Any other failure of the device.
    #[error("the device failed in {what}: {message}")]
    Device {
        /// Which call.
        what: String,
        /// What it said.
        message: String,
    },
}

/// An error unless a buffer has the length wanted.
pub(crate) fn check_len(what: &'static str, got: usize, want: usize) -> Result {
    if got == want { Ok(()) } else { Err(EngineError::Shape { what, got, want }) }
}
