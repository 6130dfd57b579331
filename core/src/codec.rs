//! The one place where state becomes bytes and bytes become state.
//!
//! Every record begins with a format version; decoding always has a limit and refuses bytes that
//! are left over. The codec is bincode, pinned, behind these two functions.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::machine::Machine;
use crate::spec::Filters;

/// Raised whenever the meaning of stored bytes changes.
pub const FORMAT_VERSION: u8 = 7;

/// No single record is larger than this.
pub const RECORD_BYTES_MAX: usize = 1 << 30;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodecError {
    #[error("the record is empty")]
    Empty,
    #[error("the record has format version {found}, this program reads version {FORMAT_VERSION}")]
    Version { found: u8 },
    #[error("{left} bytes are left over after the record")]
    TrailingBytes { left: usize },
    #[error("the record is larger than {RECORD_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the record cannot be written")]
    Encode(#[source] bincode::error::EncodeError),
    #[error("the record cannot be read")]
    Decode(#[source] bincode::error::DecodeError),
}

fn configuration() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<RECORD_BYTES_MAX>()
}

/// A record of this value, format version first.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![FORMAT_VERSION];
    bincode::serde::encode_into_std_write(value, &mut bytes, configuration()).map_err(CodecError::Encode)?;
    match bytes.len() > RECORD_BYTES_MAX {
        true => Err(CodecError::TooLarge),
        false => Ok(bytes),
    }
}

/// The value of a record made by [`encode`].
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let (version, body) = bytes.split_first().ok_or(CodecError::Empty)?;
    if *version != FORMAT_VERSION {
        return Err(CodecError::Version { found: *version });
    }
    let (value, consumed) =
        bincode::serde::decode_from_slice(body, configuration()).map_err(CodecError::Decode)?;
    match body.len() - consumed {
        0 => Ok(value),
        left => Err(CodecError::TrailingBytes { left }),
    }
}

/// A machine as it was when it was encoded, with its indexes built anew and the filters it had.
pub fn decode_machine<M>(bytes: &[u8], filters: &Filters) -> Result<M, CodecError>
where
    M: Machine + DeserializeOwned,
{
    let mut machine: M = decode(bytes)?;
    machine.equip(filters);
    machine.rebuild();
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::JobId;
    use crate::scheduler::Scheduler;

    #[test]
    fn records_of_other_versions_and_with_leftovers_are_refused() {
        let mut bytes = encode(&JobId(7)).expect("small");
        assert_eq!(decode::<JobId>(&bytes).expect("whole"), JobId(7));
        bytes.push(0);
        assert!(matches!(decode::<JobId>(&bytes), Err(CodecError::TrailingBytes { left: 1 })));
        bytes[0] = 9;
        assert!(matches!(decode::<JobId>(&bytes), Err(CodecError::Version { found: 9 })));
        assert!(matches!(decode::<JobId>(&[]), Err(CodecError::Empty)));
    }

    #[test]
    fn a_claimed_length_beyond_the_limit_is_refused_without_being_allocated() {
        let mut bytes = vec![FORMAT_VERSION];
        bytes.push(253); // a 64-bit length follows
        bytes.extend(u64::MAX.to_le_bytes());
        assert!(matches!(decode::<String>(&bytes), Err(CodecError::Decode(_))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(first) = bytes.first_mut() {
                *first = FORMAT_VERSION;
            }
            let _ = decode::<crate::messages::Outbox>(&bytes);
            let _ = decode::<crate::settings::Settings>(&bytes);
            let _ = decode::<Scheduler>(&bytes);
        }
    }
}
