//! Signals that end the command.

use std::{fs, io, sync::Arc, thread};

use modelcrate::tensor_core::output;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    flag,
    iterator::Signals,
    low_level::emulate_default_handler,
};

/// From now on nothing half-written stays behind where the command is interrupted, and it still dies
/// of the signal, so that a shell knows. A write over the limit of file sizes is an error instead.
pub(crate) fn watch() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default())?;
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let is_heeded = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM].iter().filter(|s| is_heeded(s)))?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            output::abandon();
            #[cfg(feature = "remote")]
            modelcrate::remote::abandon();
            // What cannot be done now is not worth living on for.
            let _ = emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

/// Returns the signals that whoever started this process wants it to ignore, as `nohup` does, one a
/// bit; none where the system does not say.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_is_ignored() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t2\n"), 0x1001);
        assert_eq!(ignored(""), 0);
    }
}
