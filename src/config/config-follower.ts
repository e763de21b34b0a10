import { type ConfigFile, type ConfigLocation, readConfigFile } from './config-file.ts';
import { FileWatch, type Schedule } from '../file-watch.ts';

export interface ConfigHandlers {
  take(file: ConfigFile): Promise<void>;
  /** Called on a reload if there is still no file. */
  nothing(): void;
  /** Called if a version cannot be read, or `take` threw: the previous one stays. */
  refused(error: unknown): void;
}

/** Follows the configuration file while a server runs. Its versions are passed on one after the other. */
export class ConfigFollower {
  readonly #location: ConfigLocation;
  readonly #watch: FileWatch;
  #handlers: ConfigHandlers | undefined;
  /** True once there was a file. */
  #isThere = false;
  /** The text that was last read; undefined if it was unusable. */
  #last: string | undefined;
  #turn: Promise<void> = Promise.resolve();

  /** @param schedule schedules the next look at the file */
  constructor(location: ConfigLocation, schedule?: Schedule) {
    this.#location = location;
    this.#watch = new FileWatch([location.path], schedule);
  }

  /** The present file; undefined if there is none, never was, and none is required. @throws as `readConfigFile` */
  read(): ConfigFile | undefined {
    // A file that was deleted is an error, since its declarations and requirements would silently end.
    const isNamed = this.#location.isNamed || this.#isThere;
    const file = readConfigFile({ ...this.#location, isNamed });
    this.#isThere ||= file !== undefined;
    this.#last = file?.text;
    return file;
  }

  /** Passes on versions that differ from the one at the creation of this object. */
  follow(handlers: ConfigHandlers): void {
    this.#handlers = handlers;
    this.#watch.start(() => this.#enqueue(false));
  }

  /** Passes on the present file, even if it has not changed. Resolves once it was taken or refused. */
  reload(): Promise<void> {
    this.#enqueue(true);
    return this.#turn;
  }

  stop(): void {
    this.#watch.stop();
    this.#handlers = undefined;
  }

  #enqueue(isAsked: boolean): void {
    this.#turn = this.#turn.then(() => this.#handOn(isAsked));
  }

  async #handOn(isAsked: boolean): Promise<void> {
    const [handlers, last] = [this.#handlers, this.#last];
    if (!handlers) return;
    try {
      const file = this.read();
      if (!file) handlers.nothing();
      else if (isAsked || file.text !== last) await handlers.take(file);
    } catch (error) {
      this.#last = undefined;
      handlers.refused(error);
    }
  }
}
