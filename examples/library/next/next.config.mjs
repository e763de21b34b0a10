/** @type {import('next').NextConfig} */
export default { serverExternalPackages: ['svc-api'] };
