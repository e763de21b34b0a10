import type { Server } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import { FileWatch, type Schedule } from '../file-watch.ts';
import type { Log } from '../log.ts';
import { type CertificateFiles, readCertificate } from './certificate.ts';

/**
 * Lets a server take a certificate anew when its files have changed, and are left alone for a moment. Connections that
 * are open keep the previous one; so do new ones if the files cannot be used, which is logged.
 */
export class CertificateWatch {
  #files: CertificateFiles;
  readonly #log: Log;
  readonly #schedule: Schedule | undefined;
  #watch: FileWatch;

  /** Changes from now on will be noticed. @param schedule when to look at the files next */
  constructor(files: CertificateFiles, log: Log, schedule?: Schedule) {
    this.#files = files;
    this.#log = log;
    this.#schedule = schedule;
    this.#watch = this.#watchOf(files);
  }

  /** Reads the files. @throws KeysError TLS_INVALID */
  read(): Promise<SecureContextOptions> {
    return readCertificate(this.#files);
  }

  /** Goes on with other files, at once. @throws KeysError TLS_INVALID, and goes on with those that it has */
  async replace(files: CertificateFiles, server: Server): Promise<void> {
    const watch = this.#watchOf(files);
    server.setSecureContext(await readCertificate(files));
    this.end();
    [this.#files, this.#watch] = [files, watch];
    this.start(server);
  }

  /** Follows what becomes of the files. */
  start(server: Server): void {
    const watch = this.#watch;
    watch.start(async () => {
      try {
        const read = await this.read();
        // Meanwhile, others may have taken their place.
        if (watch !== this.#watch) return;
        server.setSecureContext(read);
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

  #watchOf({ cert, key }: CertificateFiles): FileWatch {
    return new FileWatch([cert, key], this.#schedule);
  }
}
