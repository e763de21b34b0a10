import { isUtf8 } from 'node:buffer';
import { LRUCache } from 'lru-cache';
import { type GraphQLParameters, parseGraphQLRequest } from './graphql-request.ts';

/** How many bodies are kept, and how long the longest of them may be, in bytes. */
const MAX_ENTRIES = 1000;
const MAX_BODY_BYTES = 1024;

/** Reads the bodies of GraphQL requests, and keeps what is in short ones without variables: they come again and again. */
export class ParametersReader {
  readonly #known = new LRUCache<string, GraphQLParameters>({ max: MAX_ENTRIES });

  /** What a body asks for; nothing where it is not as it should be. */
  read(body: Buffer): GraphQLParameters | undefined {
    if (body.length > MAX_BODY_BYTES) return parse(body);
    // Latin-1 makes one character of each byte: it tells bodies apart as their bytes do.
    const key = body.toString('latin1');
    const known = this.#known.get(key);
    if (known) return known;
    const parameters = parse(body);
    if (parameters?.variables === null) this.#known.set(key, parameters);
    return parameters;
  }
}

function parse(body: Buffer): GraphQLParameters | undefined {
  if (!isUtf8(body)) return undefined;
  try {
    return parseGraphQLRequest(body.toString());
  } catch {
    return undefined;
  }
}
