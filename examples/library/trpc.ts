import { initTRPC, TRPCError } from '@trpc/server';
import { createHTTPServer } from '@trpc/server/adapters/standalone';
import { openKeys, type Permission } from 'svc-api';

const keys = await openKeys();
const CODES = { 400: 'BAD_REQUEST', 401: 'UNAUTHORIZED', 403: 'FORBIDDEN', 429: 'TOO_MANY_REQUESTS' } as const;

const t = initTRPC.context<Pick<Parameters<typeof createContext>[0], 'req'>>().create();
function createContext({ req }: { req: import('node:http').IncomingMessage }) {
  return { req };
}

/** A procedure for keys with a permission. */
const requiring = (permission: Permission) =>
  t.procedure.use(async ({ ctx, next }) => {
    const checked = await keys.check(ctx.req, { permission });
    if (checked.ok) return next({ ctx: { principal: checked.principal } });
    const code = CODES[checked.status as keyof typeof CODES] ?? 'INTERNAL_SERVER_ERROR';
    throw new TRPCError({ code, message: checked.message });
  });

const router = t.router({
  latest: requiring('SERVICES:READ_ANY').query(({ ctx }) => ({ by: ctx.principal.apiKey.name })),
});
createHTTPServer({ router, createContext }).listen(Number(process.env['PORT']), '127.0.0.1');
