import { stat } from 'node:fs/promises';
import type { Server } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { Log } from '../log.ts';
import { type CertificateFiles, readCertificate } from './certificate.ts';

/** How often the files are looked at. Notices of the file system miss links that are changed. */
const PERIOD_MS = 1000;

/**
 * Lets a server take a certificate anew when its files have changed, and are left alone for a moment. Connections that
 * are open keep the previous one; so do new ones if the files cannot be used, which is logged.
 */
export class CertificateWatch {
  #files: CertificateFiles;
  readonly #log: Log;
  readonly #periodMs: number;
  /** The state of the files when they were last read, and when they were last looked at. */
  #taken = '';
  #seen = '';
  #timer: NodeJS.Timeout | undefined;

  constructor(files: CertificateFiles, log: Log, periodMs = PERIOD_MS) {
    this.#files = files;
    this.#log = log;
    this.#periodMs = periodMs;
  }

  /** Reads the files. @throws KeysError TLS_INVALID */
  async read(): Promise<SecureContextOptions> {
    this.#taken = this.#seen = await stateOf(this.#files);
    return readCertificate(this.#files);
  }

  /** Goes on with other files, at once. @throws KeysError TLS_INVALID, and goes on with those that it has */
  async replace(files: CertificateFiles, server: Server): Promise<void> {
    const state = await stateOf(files);
    server.setSecureContext(await readCertificate(files));
    [this.#files, this.#taken, this.#seen] = [files, state, state];
  }

  /** Follows what becomes of the files since they were read. */
  start(server: Server): void {
    const look = async () => {
      await this.#look(server);
      // One after the other: what was found meanwhile is not settled.
      this.#timer?.refresh();
    };
    this.#timer = setTimeout(() => void look(), this.#periodMs).unref();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #look(server: Server): Promise<void> {
    const now = await stateOf(this.#files);
    const isSettled = now === this.#seen;
    this.#seen = now;
    if (!isSettled || now === this.#taken) return;
    try {
      server.setSecureContext(await this.read());
      this.#log.info(this.#files, 'the certificate has changed: new connections get the new one');
    } catch (error) {
      this.#log.error(
        { err: error },
        'the certificate has changed, but cannot be used: new connections get the old one',
      );
    }
  }
}

/** What changes when one of the files does. */
async function stateOf({ cert, key }: CertificateFiles): Promise<string> {
  const states = [cert, key].map(async (path) => {
    const found = await stat(path, { bigint: true }).catch(() => undefined);
    return found && `${found.dev} ${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
  });
  return (await Promise.all(states)).join();
}
