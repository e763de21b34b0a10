-- /etc/apache2/svc-api.lua: deletes what only svc-api may say, and names that some services take for others, as "_" for
-- "-".

function delete_forged(r)
    for name in pairs(r:headers_in_table()) do
        if name:lower():match("^x%-auth%-") or name:match("[^%w-]") then
            r.headers_in[name] = nil
        end
    end
    return apache2.DECLINED
end
