import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { FileWatch, type Schedule } from '../file-watch.ts';
import { givesRights, KeysError, printable, readGuardedFile } from '../keys/basics/index.ts';
import type { Log } from '../log.ts';

/** The files of a certificate, in PEM. */
export interface CertificateFiles {
  /** The path of the certificate, followed by its chain. */
  cert: string;
  /** The path of its private key, without a passphrase. */
  key: string;
  /** The path of the CA certificates for edges, which must then present a certificate. Default: none is required. */
  clientCa?: string;
}

/** Far more than a chain of certificates has. */
const MAX_BYTES = 1024 * 1024;
/** Forbidden rights: reading and writing by others, and writing by the group. */
const FORBIDDEN_RIGHTS = 0o026;

/**
 * Reads a certificate and its key, and checks that they fit together. TLS is 1.2 or later.
 * @throws KeysError TLS_INVALID, which names the file and the problem
 */
export function readCertificate(files: CertificateFiles): SecureContextOptions {
  const [cert, key] = [readPem(files.cert), readPem(files.key, FORBIDDEN_RIGHTS)];
  const certificate = parse(() => new X509Certificate(cert), files.cert, 'does not begin with a certificate in PEM');
  if (!certificate.checkPrivateKey(privateKeyIn(key, files.key)))
    throw invalid(files.key, `is not the key of the certificate in ${printable(files.cert)}`);
  const options: SecureContextOptions = { cert, key, minVersion: 'TLSv1.2' };
  if (files.clientCa !== undefined) {
    options.ca = readPem(files.clientCa);
    parse(() => new X509Certificate(options.ca as Buffer), files.clientCa, 'does not begin with a certificate in PEM');
  }
  parse(() => createSecureContext(options), files.cert, 'cannot be used');
  return options;
}

function readPem(path: string, forbiddenRights = 0): Buffer {
  const { bytes } = readGuardedFile(path, MAX_BYTES, {
    check: (stat) => {
      if (givesRights(stat, forbiddenRights))
        throw invalid(path, 'can be read or changed by other users. Run chmod 600 on it, or 640 for its group');
    },
    failed: (reason, cause) => invalid(path, reason, cause),
  });
  return bytes;
}

function privateKeyIn(pem: Buffer, path: string): KeyObject {
  if (pem.includes('ENCRYPTED'))
    throw invalid(path, 'is encrypted. Remove its passphrase (openssl pkey), and let only its owner read it');
  return parse(() => createPrivateKey(pem), path, 'is not a private key in PEM');
}

function parse<Value>(read: () => Value, path: string, problem: string): Value {
  try {
    return read();
  } catch (error) {
    throw invalid(path, `${problem} (${(error as Error).message})`, error);
  }
}

function invalid(path: string, reason: string, cause?: unknown): KeysError {
  return new KeysError('TLS_INVALID', `For TLS, ${printable(path)} ${reason}.`, { cause });
}

/**
 * Reloads the certificate of a server after its files have changed and then stayed unchanged for a moment. Open
 * connections keep the previous one. If the files are unusable, new connections do as well, and the problem is logged.
 */
export class CertificateWatch {
  #files: CertificateFiles;
  readonly #log: Log;
  readonly #schedule: Schedule | undefined;
  #watch: FileWatch;

  /** Notices changes from now on. @param schedule schedules the next look at the files */
  constructor(files: CertificateFiles, log: Log, schedule?: Schedule) {
    this.#files = files;
    this.#log = log;
    this.#schedule = schedule;
    this.#watch = this.#watchOf(files);
  }

  /** Reads the files. @throws KeysError TLS_INVALID */
  read(): SecureContextOptions {
    return readCertificate(this.#files);
  }

  /** Switches to other files at once. @throws KeysError TLS_INVALID, and keeps the present ones */
  replace(files: CertificateFiles, server: Server): void {
    const watch = this.#watchOf(files);
    server.setSecureContext(readCertificate(files));
    this.end();
    [this.#files, this.#watch] = [files, watch];
    this.start(server);
  }

  /** Watches the files. */
  start(server: Server): void {
    this.#watch.start(() => {
      try {
        server.setSecureContext(this.read());
        this.#log.info(this.#files, 'the certificate has changed: new connections get the new one');
      } catch (error) {
        this.#log.error(
          { err: error },
          'the certificate has changed, but cannot be used: new connections get the old one',
        );
      }
    });
  }

  end(): void {
    this.#watch.stop();
  }

  #watchOf({ cert, key, clientCa }: CertificateFiles): FileWatch {
    return new FileWatch([cert, key, ...(clientCa === undefined ? [] : [clientCa])], this.#schedule);
  }
}
