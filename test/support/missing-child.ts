import { registerHooks } from 'node:module';

/** Preloaded into a program: hides the packages whose names begin with a text. */
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (!specifier.startsWith(process.env['MISSING_PACKAGES']!)) return nextResolve(specifier, context);
    throw Object.assign(new Error(`Cannot find package '${specifier}'`), { code: 'ERR_MODULE_NOT_FOUND' });
  },
});
