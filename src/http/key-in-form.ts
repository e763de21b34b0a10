import type { Context } from 'hono';
import type { Admitted, BearerCheck } from './bearer-check.ts';
import type { Received } from './client-address.ts';
import { HonoHead } from './hono-head.ts';
import type { Reply } from './replies.ts';

/** A key in a form, in place of the header that programs send. */
class KeyInForm extends HonoHead implements Received {
  readonly #key: string;

  constructor(c: Context, key: string) {
    super(c);
    this.#key = key;
  }

  override header(name: string): string | undefined {
    return name === 'authorization' ? `Bearer ${this.#key}` : super.header(name);
  }
}

/** Why somebody is not let in, as a page says it. */
export interface RefusedPerson {
  readonly status: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Lets in a person who shows a key in a form, by the rules for all requests. */
export async function admitKey(
  c: Context,
  key: string,
  check: BearerCheck,
): Promise<Admitted | { readonly refused: RefusedPerson }> {
  const admission = await check.enter(new KeyInForm(c, key));
  return 'refusal' in admission ? { refused: refusedPerson(admission.refusal) } : admission;
}

/** What a page says in place of a reply that programs get. */
export function refusedPerson({ status, text, headers = {} }: Reply): RefusedPerson {
  const [error] = (JSON.parse(text) as { errors: { message: string }[] }).errors;
  const { 'Retry-After': retryAfter } = headers as { 'Retry-After'?: string };
  return {
    // A browser would ask for a password, where a challenge belongs to the answer.
    status: status === 401 || status === 400 ? 403 : status,
    message: error!.message,
    headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter },
  };
}
