//! What the standard library has no call for: room on a disk, and room reserved on it.

use std::{ffi::CString, fs::File, io, os::fd::AsRawFd, os::unix::ffi::OsStrExt, path::Path};

/// Bytes that this process may still write to the file system of `path`.
pub(super) fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` is a C string that lives through the call, `stat` is writable and of the right type.
    if unsafe { libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: statvfs returned 0, so it has filled `stat`.
    let stat = unsafe { stat.assume_init() };
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Makes `file` occupy its first `bytes` bytes on the disk.
pub(super) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: the descriptor is open for as long as `file` is borrowed.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}
