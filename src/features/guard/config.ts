import { oneOf } from '../../config/schema.ts';
import { section } from '../../config/section.ts';

export const signIn = section({
  description: 'Whether people sign in to guarded services, on a page: "on" or "off".',
  otherwise: 'only behind guard',
  page: 'guard.md#people',
  schema: () => oneOf(['on', 'off']),
  into: (signIn) => ({ signIn }),
});
