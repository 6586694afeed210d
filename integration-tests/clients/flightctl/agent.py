"""The key of an agent, with the requests that it signs."""

import base64
import hashlib

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

VERSION = "flightctl.io/v1beta1"


class Agent:
    """An agent that wants to be enrolled."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        point = self.key.public_key().public_numbers()
        numbers = b"".join(number.to_bytes((number.bit_length() + 7) // 8, "big") for number in [point.x, point.y])
        digest = base64.b32hexencode(hashlib.sha256(numbers).digest())
        self.name = digest.decode().rstrip("=").lower()

    def key_text(self):
        """The private key, in PEM."""
        kind, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(kind, form, serialization.NoEncryption()).decode()

    def signing_request(self):
        """A request for a certificate, in PEM."""
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, self.name)])
        request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(self.key, hashes.SHA256())
        return request.public_bytes(serialization.Encoding.PEM).decode()

    def enrolment(self, **labels):
        """The document with which the agent asks to be enrolled."""
        return {
            "apiVersion": VERSION,
            "kind": "EnrollmentRequest",
            "metadata": {"name": self.name},
            "spec": {"csr": self.signing_request(), "labels": labels, "osMode": "image"},
        }

    def is_of(self, certificate):
        """Whether a certificate in PEM is for the key and the name of the agent."""
        read = x509.load_pem_x509_certificate(certificate.encode())
        names = [name.value for name in read.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
        return names == [self.name] and read.public_key() == self.key.public_key()
