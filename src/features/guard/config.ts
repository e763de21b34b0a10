import { oneOf } from '../../config/schema.ts';
import { section } from '../../config/section.ts';

export const signIn = section({
  description: 'Sign-in page for people who open a guarded service: "on" or "off".',
  otherwise: 'on behind guard, off behind other proxies',
  page: 'guard.md#people',
  schema: () => oneOf(['on', 'off']),
  into: (signIn) => ({ signIn }),
});
