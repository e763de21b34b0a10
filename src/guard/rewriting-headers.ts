import { canonicalName } from './canonical-name.ts';

/** Headers by which a client can ask some servers for another method or path than the one that a route is found by. */
const REWRITING: ReadonlySet<string> = new Set([
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
]);

/** Whether a request may become another one by the header of this name, in whatever form. */
export function isRewriting(name: string): boolean {
  return /^x/i.test(name) && REWRITING.has(canonicalName(name));
}
