import Koa, { type DefaultState, type Middleware } from 'koa';
import { openKeys, type Principal } from 'svc-api';

const keys = await openKeys();

/** Lets requests pass if their key has a permission. */
const auth: Middleware<{ principal: Principal }> = async (ctx, next) => {
  const checked = await keys.check(ctx.req, { permission: 'SERVICES:READ_ANY' });
  ctx.set(checked.headers);
  if (checked.ok) {
    ctx.state.principal = checked.principal;
    return next();
  }
  ctx.status = checked.status;
  ctx.body = checked.body;
};

const app = new Koa<DefaultState & { principal: Principal }>();
app.use(auth);
app.use((ctx) => {
  ctx.body = { by: ctx.state.principal.apiKey.name };
});
app.listen(Number(process.env['PORT']), '127.0.0.1');
