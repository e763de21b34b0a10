import { ServerResponse } from 'node:http';
import { REQUEST_ID } from './request-id.ts';
import { notesOf } from './request-notes.ts';

const NAME = REQUEST_ID.toLowerCase();

type Fields = Readonly<Record<string, unknown>>;

/** A response that has the id of its request, whoever writes its head, unless that has one of its own. */
export class IdentifiedResponse extends ServerResponse {
  override writeHead(status: number, reason?: unknown, headers?: unknown): this {
    const id = notesOf(this.req)?.id;
    const isNamed = typeof reason === 'string';
    const given = isNamed ? headers : (reason ?? headers);
    const all = (id === undefined || this.hasHeader(NAME) ? given : withId(given, id)) as string[];
    return isNamed ? super.writeHead(status, reason, all) : super.writeHead(status, all);
  }
}

function withId(headers: unknown, id: string): unknown {
  if (Array.isArray(headers)) return hasId(headers) ? headers : [...(headers as unknown[]), ...entryFor(headers, id)];
  const fields = headers as Fields | undefined;
  const isThere = fields && Object.keys(fields).some((name) => name.toLowerCase() === NAME);
  return isThere ? fields : { ...fields, [NAME]: id };
}

/** Node takes names and values in turn, or pairs of them. */
function entryFor(headers: readonly unknown[], id: string): unknown[] {
  return Array.isArray(headers[0]) ? [[NAME, id]] : [NAME, id];
}

function hasId(headers: readonly unknown[]): boolean {
  const isName = (name: unknown) =>
    typeof name === 'string' && name.length === NAME.length && name.toLowerCase() === NAME;
  if (Array.isArray(headers[0])) return headers.some((pair) => isName((pair as unknown[])[0]));
  for (let index = 0; index < headers.length; index += 2) if (isName(headers[index])) return true;
  return false;
}
