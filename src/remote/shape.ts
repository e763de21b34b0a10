import { isRecord } from '../keys/basics/index.ts';
import { type JsonObject, MAX_JSON_BYTES } from '../keys/key/index.ts';
import type { ServerRequest as Request } from '../keys/operations/index.ts';

/** A value in an answer: its selection in a document, and its reader, which throws for unexpected values. */
export interface Shape<Value> {
  /** The field of the value, with its arguments; empty for the fields around it. Default: the name of the member. */
  readonly field?: string;
  /** Empty for scalars. */
  readonly selection: string;
  readonly read: (value: unknown) => Value;
}

type Members = Readonly<Record<string, Shape<unknown>>>;
type ValuesOf<Of extends Members> = {
  -readonly [Name in keyof Of]: Of[Name] extends Shape<infer Value> ? Value : never;
};

function scalar<Value>(isRight: (value: unknown) => boolean): Shape<Value> {
  return {
    selection: '',
    read(value) {
      if (!isRight(value)) throw new TypeError('a value of another type');
      return value as Value;
    },
  };
}

export const text: Shape<string> = scalar((value) => typeof value === 'string');
export const number: Shape<number> = scalar(Number.isFinite);
export const whole: Shape<number> = scalar(Number.isInteger);
export const yesOrNo: Shape<boolean> = scalar((value) => typeof value === 'boolean');
/** Limits the depth, since deeper objects could not be shown. */
export const json: Shape<JsonObject> = scalar(
  (value) => isRecord(value) && Buffer.byteLength(JSON.stringify(value)) <= MAX_JSON_BYTES,
);
/** A time as milliseconds since 1970. */
export const time: Shape<number> = mapped(text, (value) => number.read(Date.parse(value)));

/** Text of a narrower type. A newer server can send unknown words. */
export function word<Word extends string>(): Shape<Word> {
  return text as Shape<Word>;
}

export function nullable<Value>({ selection, read }: Shape<Value>): Shape<Value | null> {
  return { selection, read: (value) => (value === null ? null : read(value)) };
}

export function list<Value>({ selection, read }: Shape<Value>): Shape<Value[]> {
  return {
    selection,
    read(value) {
      if (!Array.isArray(value)) throw new TypeError('not a list');
      return value.map((item) => read(item));
    },
  };
}

export function mapped<Value, Result>({ selection, read }: Shape<Value>, map: (value: Value) => Result): Shape<Result> {
  return { selection, read: (value) => map(read(value)) };
}

/** The value of a field with another name. */
export function of<Value>(field: string, shape: Shape<Value>): Shape<Value> {
  return { ...shape, field };
}

/** An object made from some of the fields around it. */
export function around<Of extends Members>(members: Of): Shape<ValuesOf<Of>> {
  return of('', object(members));
}

export function object<Of extends Members>(members: Of): Shape<ValuesOf<Of>> {
  const all = Object.entries(members);
  const selected = all.map(([name, { field = name, selection }]) =>
    field === '' || selection === '' ? field || selection : `${field} { ${selection} }`,
  );
  return {
    selection: [...new Set(selected)].join(' '),
    read(value) {
      if (typeof value !== 'object' || value === null) throw new TypeError('not an object');
      const read = all.map(([name, { field = name, read: readMember }]) => {
        const [key] = /^\w*/.exec(field)!;
        return [name, readMember(key === '' ? value : (value as Record<string, unknown>)[key])];
      });
      return Object.fromEntries(read) as ValuesOf<Of>;
    },
  };
}

/** The value of one field. */
export function only<Value>(field: string, shape: Shape<Value>): Shape<Value> {
  return mapped(object({ value: of(field, shape) }), ({ value }) => value);
}

/**
 * A request for a root field, with the types of its arguments in the schema. Arguments in its selection refer to them.
 */
function requestOf(root: 'query' | 'mutation') {
  return function request<Answer>(
    name: string,
    types: Readonly<Record<string, string>>,
    shape: Shape<Answer>,
  ): Request<Answer> {
    return {
      documentFor(variables) {
        const given = Object.keys(types).filter((each) => variables[each as keyof typeof variables] !== undefined);
        const passed = given.filter((each) => !new RegExp(`\\$${each}\\b`).test(shape.selection));
        const inParentheses = (parts: string[]) => (parts.length > 0 ? `(${parts.join(', ')})` : '');
        const declared = inParentheses(given.map((each) => `$${each}: ${types[each]}`));
        const field = name + inParentheses(passed.map((each) => `${each}: $${each}`));
        const selection = object({ [name]: of(field, shape) });
        return `${root}${declared} { ${selection.selection} }`;
      },
      read: only(name, shape).read,
    };
  };
}

/** A request that changes nothing. */
export const query = requestOf('query');
/** A request that changes something. */
export const mutation = requestOf('mutation');

/** A request with a converted answer. Errors of `map` refuse the answer. */
export function mapRequest<Answer, Result>(asked: Request<Answer>, map: (answer: Answer) => Result): Request<Result> {
  return { ...asked, read: (data) => map(asked.read(data)) };
}
