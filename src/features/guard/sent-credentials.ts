import type { Readable } from 'node:stream';
import { HiddenTexts } from './hidden-texts.ts';
import { canonicalName } from './identity-headers.ts';
import { KeysError, printable, readSecretFile, type SecretText, versionOfFile } from '../../keys/basics/index.ts';
import type { Log } from '../../log.ts';
import type { SentCredential, Upstream } from '../routes/index.ts';

/** The credentials that an upstream gets instead of a caller's, and the filters that hide them from callers. */
export interface Sent {
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Checks whether a caller's header is replaced by the upstream's own. The name is canonical. */
  replaces(name: string): boolean;
  /** Adds the credentials of the query to a target, instead of the caller's. */
  addTo(target: string): string;
  /** Replaces them by asterisks in a text of an answer's head. */
  hide(text: string): string;
  /** Replaces them in the body of an answer, keeping its length. */
  hideIn(body: Readable): Readable;
}

/** For an upstream that has none. */
const NOTHING_SENT: Sent = {
  headers: [],
  replaces: () => false,
  addTo: (target) => target,
  hide: (text) => text,
  hideIn: (body) => body,
};

/** The same for an upstream whose responses are filtered: it must not compress them. */
export function withoutCompression(sent: Sent): Sent {
  if (sent.replaces('accept-encoding')) return sent;
  return {
    headers: [...sent.headers, ...PLAIN],
    replaces: (name) => name === 'accept-encoding' || sent.replaces(name),
    addTo: (target) => sent.addTo(target),
    hide: (text) => sent.hide(text),
    hideIn: (body) => sent.hideIn(body),
  };
}

const PLAIN = ['Accept-Encoding', 'identity'];

/** A valid credential: characters that headers can hold, without white space around them. */
const VALUE = /^[!-~](?:[ -~]*[!-~])?$/;
/** Shorter texts also occur by chance, so they are not hidden. */
const MIN_HIDDEN = 16;
/** Interval for checking files for changes, in milliseconds. */
const LOOK_MS = 1000;

/** Words for the places of a credential. */
const WORDS = {
  what: 'The file of a credential for an upstream',
  remedy: 'Correct it in "upstreams", or --send-header.',
};

/** @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE, CONFIG_INVALID */
function readCredential(file: string): SecretText {
  const { text, version } = readSecretFile(file, WORDS);
  const value = text.trim();
  if (VALUE.test(value)) return { text: value, version };
  const problem = value === '' ? 'is empty' : 'holds more than one line of printable ASCII';
  throw new KeysError(
    'CONFIG_INVALID',
    `${WORDS.what}, ${printable(file, 200)}, ${problem}. Write only the credential.`,
  );
}

/** The credentials of an upstream. Their files are read again when they change. */
export class SentCredentials {
  readonly #credentials: readonly SentCredential[];
  readonly #ranges: boolean;
  readonly #log: Log;
  readonly #files = new Map<string, SecretText>();
  #lookedAt = performance.now();
  #sent: Sent;

  /** @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE, CONFIG_INVALID of their files */
  constructor({ send, ranges = false }: Pick<Upstream, 'send' | 'ranges'>, log: Log) {
    this.#credentials = send;
    this.#ranges = ranges;
    this.#log = log;
    for (const { file } of send) this.#files.set(file, readCredential(file));
    this.#sent = this.#combine();
  }

  /** As they are now. A file is looked at once a second, as long as there are requests. */
  get now(): Sent {
    const now = performance.now();
    if (this.#files.size > 0 && now - this.#lookedAt >= LOOK_MS) {
      this.#lookedAt = now;
      for (const file of this.#files.keys()) this.#look(file);
    }
    return this.#sent;
  }

  #look(file: string): void {
    try {
      if (versionOfFile(file) === this.#files.get(file)!.version) return;
      this.#files.set(file, readCredential(file));
      this.#sent = this.#combine();
      this.#log.info({ file }, 'a credential for an upstream was read again');
    } catch (error) {
      // The file may be half written: keep using the previous one until it can be read.
      this.#log.error(
        { err: error, file },
        'a credential for an upstream cannot be read: the previous one stays in use',
      );
    }
  }

  #combine(): Sent {
    if (this.#credentials.length === 0) return NOTHING_SENT;
    const written = this.#credentials.map((credential) => {
      const { text } = this.#files.get(credential.file)!;
      return { ...credential, ...writeCredential(credential, text) };
    });
    return new WrittenCredentials(written, { ranges: this.#ranges, log: this.#log });
  }
}

interface Written extends SentCredential {
  /** As it is sent. */
  readonly value: string;
  /** The texts that would reveal it: the credential itself, and its form in Basic. */
  readonly forms: readonly string[];
}

function writeCredential({ scheme, user }: SentCredential, text: string): Pick<Written, 'value' | 'forms'> {
  if (user === undefined) return { value: scheme === undefined ? text : `${scheme} ${text}`, forms: [text] };
  const pair = Buffer.from(`${user}:${text}`).toString('base64');
  return { value: `Basic ${pair}`, forms: [text, pair] };
}

class WrittenCredentials implements Sent {
  readonly headers: readonly string[];
  readonly #names: ReadonlySet<string>;
  readonly #parameters: readonly Written[];
  /** Undefined where none is long enough to be found. */
  readonly #hidden: HiddenTexts | undefined;

  constructor(written: readonly Written[], { ranges, log }: { ranges: boolean; log: Log }) {
    const inHeaders = written.filter((each) => each.in === 'header');
    this.#parameters = written.filter((each) => each.in === 'query');
    const forms = new Set(written.flatMap((each) => each.forms).filter(isLong));
    this.#hidden = forms.size > 0 ? new HiddenTexts([...forms]) : undefined;
    for (const {
      file,
      forms: [text = ''],
    } of written)
      if (!isLong(text))
        log.warn({ file }, `a credential for an upstream has fewer than ${MIN_HIDDEN} characters: answers may show it`);
    // A compressed or partial answer cannot be searched.
    const plain = this.#hidden ? PLAIN : [];
    this.headers = [...inHeaders.flatMap(({ name, value }) => [name, value]), ...plain];
    const unseen = this.#hidden ? [...ENCODED, ...(ranges ? [] : PARTS)] : [];
    this.#names = new Set([...inHeaders.map(({ name }) => canonicalName(name)), ...unseen]);
  }

  replaces(name: string): boolean {
    return this.#names.has(name);
  }

  addTo(target: string): string {
    if (this.#parameters.length === 0 || !target.startsWith('/')) return target;
    const end = target.indexOf('?');
    const path = end === -1 ? target : target.slice(0, end);
    const names = new Set(this.#parameters.map(({ name }) => parameterName(name)));
    // Some services take a semicolon for an ampersand (WHATWG URL does not).
    const kept = (end === -1 ? '' : target.slice(end + 1))
      .split(/(?=[&;])/)
      .filter((part) => !names.has(parameterName(part.replace(/^[&;]/, '').split('=', 1)[0]!)));
    const own = this.#parameters.map(({ name, value }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
    const query = kept.join('').replace(/^[&;]/, '');
    return `${path}?${[...(query === '' ? [] : [query]), ...own].join('&')}`;
  }

  hide(text: string): string {
    return this.#hidden?.hide(text) ?? text;
  }

  hideIn(body: Readable): Readable {
    if (!this.#hidden) return body;
    const hiding = this.#hidden.stream();
    body.once('error', () => hiding.destroy());
    return body.pipe(hiding);
  }
}

const ENCODED = ['accept-encoding', 'sec-websocket-extensions'];
/** Some servers still take the last one, which early browsers sent. */
const PARTS = ['range', 'if-range', 'request-range'];

function isLong(form: string): boolean {
  return form.length >= MIN_HIDDEN;
}

/** The name of a parameter as services may read it: case-insensitive, decoded, as in PHP. */
function parameterName(name: string): string {
  const spaced = name.replaceAll('+', ' ');
  let decoded = spaced;
  try {
    decoded = decodeURIComponent(spaced);
  } catch {
    // Services take it as it is.
  }
  return decoded.trimStart().replace(/\[.*/s, '').replaceAll(/[ .]/g, '_').toLowerCase();
}
