{# Every materialization calls it, also dbt's own for views and functions. #}
{% macro qbeast__apply_grants(relation, grant_config, should_revoke=true) %}
  {%- if grant_config -%}
    {% do exceptions.warn(relation.render() ~ ': `grants` has no effect, because open-source Spark has no GRANT') %}
  {%- endif -%}
{% endmacro %}
