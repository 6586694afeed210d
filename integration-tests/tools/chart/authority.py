"""Certificates as cert-manager would make them."""

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

USAGES = {"server auth": ExtendedKeyUsageOID.SERVER_AUTH, "client auth": ExtendedKeyUsageOID.CLIENT_AUTH}


class Authority:
    """Signs whatever it is asked for."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = (
            begin(self.name, self.name, self.key).add_extension(basic, critical=True).sign(self.key, hashes.SHA256())
        )

    def issue(self, spec):
        """The members of the Secret for a Certificate with this `spec`."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.UniformResourceIdentifier(uri) for uri in spec.get("uris", [])]
        names += [x509.DNSName(name) for name in spec.get("dnsNames", [])]
        usages = [USAGES[usage] for usage in spec["usages"] if usage in USAGES]
        certificate = (
            begin(x509.Name([]), self.name, key)
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return {
            "tls.crt": certificate.public_bytes(Encoding.PEM).decode(),
            "tls.key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
            "ca.crt": self.certificate.public_bytes(Encoding.PEM).decode(),
        }


def begin(subject, issuer, key):
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
