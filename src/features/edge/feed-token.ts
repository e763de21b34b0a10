import { KeysError, readSecretFile, versionOfFile } from '../../keys/basics/index.ts';
import type { Log } from '../../log.ts';

/** A key with EDGE:READ_ANY, or the path of its file, which is read again when it changes. */
export type GivenToken = string | { readonly file: string };

const FORM = /^[\x21-\x7e]+$/;
const WORDS = { what: 'The file of the token for the origin', remedy: 'Correct --token-file.' };

/** The key of an edge at its origin. */
export class FeedToken {
  readonly #given: GivenToken;
  readonly #log: Log;
  #known: { text: string; version: string };

  /** @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE, CONFIG_INVALID */
  constructor(given: GivenToken, log: Log) {
    this.#given = given;
    this.#log = log;
    this.#known = read(given);
  }

  /** The current token. */
  get text(): string {
    const given = this.#given;
    if (typeof given === 'string') return given;
    const { file } = given;
    try {
      if (versionOfFile(file) !== this.#known.version) {
        this.#known = read(given);
        this.#log.info({ file }, 'the token for the origin was read again');
      }
    } catch (error) {
      // The file may be half written: keep using the previous token until it can be read.
      this.#log.error({ err: error, file }, 'the token for the origin cannot be read: the previous one stays in use');
    }
    return this.#known.text;
  }
}

/** @throws KeysError as the constructor */
function read(given: GivenToken): { text: string; version: string } {
  const { text, version } =
    typeof given === 'string' ? { text: given, version: '' } : readSecretFile(given.file, WORDS);
  if (FORM.test(text.trim())) return { text: text.trim(), version };
  throw new KeysError(
    'CONFIG_INVALID',
    `${WORDS.what} does not contain a key. Write only the secret of a key with EDGE:READ_ANY.`,
  );
}
