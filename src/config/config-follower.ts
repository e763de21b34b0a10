import { type ConfigFile, type ConfigLocation, readConfigFile } from './config-file.ts';
import { FileWatch, type Schedule } from '../file-watch.ts';

export interface ConfigHandlers {
  take(file: ConfigFile): Promise<void>;
  /** A reload was asked for, and there is no file, as there was none before. */
  nothing(): void;
  /** A version cannot be read, or `take` threw: the one before is to stay. */
  refused(error: unknown): void;
}

/** Follows the file of configuration while a server runs. Its versions are handed on one after the other. */
export class ConfigFollower {
  readonly #location: ConfigLocation;
  readonly #watch: FileWatch;
  #handlers: ConfigHandlers | undefined;
  /** Whether there was a file at any time. */
  #isThere = false;
  /** What it said when it was last read; undefined if it could not be used. */
  #last: string | undefined;
  #turn: Promise<void> = Promise.resolve();

  /** @param schedule when to look at the file next */
  constructor(location: ConfigLocation, schedule?: Schedule) {
    this.#location = location;
    this.#watch = new FileWatch([location.path], schedule);
  }

  /** The file as it is; undefined if there is none, and never was, and need not be. @throws as `readConfigFile` */
  read(): ConfigFile | undefined {
    // One that has gone says nothing: what it had declared and required would fall away.
    const isNamed = this.#location.isNamed || this.#isThere;
    const file = readConfigFile({ ...this.#location, isNamed });
    this.#isThere ||= file !== undefined;
    this.#last = file?.text;
    return file;
  }

  /** Hands on what the file becomes from when this object was made. */
  follow(handlers: ConfigHandlers): void {
    this.#handlers = handlers;
    this.#watch.start(() => this.#enqueue(false));
  }

  /** Hands on the file as it is now, also if it has not changed. Resolves once it was taken, or refused. */
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
