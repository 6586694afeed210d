//! Messages that are encoded once and sent to many clients.

use std::marker::PhantomData;

use bytes::{BufMut as _, Bytes};
use prost::Message;
use tonic::{
    Status,
    codec::{Codec, EncodeBuf, Encoder},
};
use tonic_prost::ProstDecoder;

/// A message as it is on the wire. Clones share the bytes.
///
/// The servers of this crate answer with it where many clients get the same messages; to a client nothing differs.
pub struct Encoded<M> {
    bytes: Bytes,
    message: PhantomData<fn() -> M>,
}

impl<M> Encoded<M> {
    /// The message that was encoded as these bytes.
    pub fn from_bytes(bytes: Bytes) -> Self {
        Self { bytes, message: PhantomData }
    }

    /// The message on the wire.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl<M: Message> From<M> for Encoded<M> {
    fn from(message: M) -> Self {
        Self::from_bytes(message.encode_to_vec().into())
    }
}

/// Answer of a server.
pub trait Answer {
    /// Writes it as it is on the wire.
    ///
    /// # Errors
    /// When there is no room for it.
    fn write(self, buffer: &mut EncodeBuf<'_>) -> Result<(), Status>;
}

impl<M: Message> Answer for M {
    fn write(self, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        self.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl<M> Answer for Encoded<M> {
    fn write(self, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&self.bytes);
        Ok(())
    }
}

/// The codec of the servers of this crate: reads requests `Q` and writes answers `A`.
pub struct ServerCodec<A, Q>(PhantomData<fn() -> (A, Q)>);

impl<A, Q> Default for ServerCodec<A, Q> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<A: Answer + Send + 'static, Q: Message + Default + 'static> Codec for ServerCodec<A, Q> {
    type Encode = A;
    type Decode = Q;
    type Encoder = Self;
    type Decoder = ProstDecoder<Q>;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::default()
    }
}

impl<A: Answer, Q> Encoder for ServerCodec<A, Q> {
    type Item = A;
    type Error = Status;

    fn encode(&mut self, answer: A, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        answer.write(buffer)
    }
}
